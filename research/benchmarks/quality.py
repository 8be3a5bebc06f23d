"""Quality of the default on real streams: shipped ones, and those of the yardstick."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import orcast as oc
from orcast.metrics import LEVELS, brier, ece
from research.benchmarks.lines import Line, Lines, Remark
from research.benchmarks.streams import (
    Case,
    Score,
    batches,
    last_known,
    read_case,
    relative,
    run_case,
    score,
    shipped_cases,
    yardstick_folder,
)
from research.output import geometric_mean

TITLE = "Quality: default settings, real streams"
BANDS = (0.5, 0.9, 0.98)
QUICK_ROUNDS = 600


def measure(quick: bool = False) -> Lines:
    """Streams of quantities, at once and late, coverage on each side, and streams of events."""
    rounds = QUICK_ROUNDS if quick else None
    yield Remark("shipped streams:")
    cases = shipped_cases(rounds)
    quantiles = [run_case(case, None) for case in cases]
    yield from _lines(cases, quantiles)
    folder = yardstick_folder()
    if folder is None:
        yield Remark("yardstick: skipped, no folder is named by --yardstick or ORCAST_YARDSTICK")
    else:
        files = sorted((folder / "streams").glob("*.npz"))
        yield Remark("yardstick:")
        own = [read_case(file, rounds) for file in files if not file.name.startswith("bin_")]
        found = [run_case(case, case.reveal) for case in own]
        yield from _lines(own, found)
        cases, quantiles = cases + own, quantiles + found
    yield from _coverage(cases, [q for q, _ in quantiles])
    yield from _late([case for case in cases if case.reveal is None])
    if folder is not None:
        yield from _events([file for file in files if file.name.startswith("bin_")])


def _lines(cases: list[Case], found: list[tuple[np.ndarray, oc.Guarantee]]) -> Lines:
    """Pinball, QCE, rolling QCE and coverage of each stream, and geometric means."""
    before = [score(case, case.quantiles) for case in cases]
    after = [score(case, q) for case, (q, _) in zip(cases, found, strict=True)]
    for case, raw, ours, (_, guarantee) in zip(cases, before, after, found, strict=True):
        last = relative(
            last_known(case.y, np.arange(case.y.size) - 1, LEVELS, case.low), case.quantiles, case.y, LEVELS
        )
        note = (
            f"QCE {ours.qce:.4f} (base {raw.qce:.4f}), worst rolling {ours.worst:.2f} ({raw.worst:.2f}), "
            f"90% band {ours.coverage:.1%} ({raw.coverage:.1%}), held {guarantee.held:.1%}; last outcome {last:.3f}"
        )
        yield Line(case.name, "pinball / base forecast's", ours.relative, form=".3f", note=note)
    mean = f"geometric mean, {len(cases)} streams"
    for what, form, name in (("QCE", ".4f", "qce"), ("worst rolling-200 QCE", ".3f", "worst")):
        note = f"base forecast {_mean(before, name):{form}}"
        yield Line(mean, what, _mean(after, name), form=form, note=note)
    yield Line(mean, "pinball / base forecast's", _mean(after, "relative"), form=".3f")


def _mean(scores: list[Score], name: str) -> float:
    return geometric_mean(getattr(each, name) for each in scores)


def _coverage(cases: list[Case], found: list[np.ndarray]) -> Lines:
    """Share of outcomes below and above bands, mean over streams; ties in favour of the forecast."""
    ends = np.array([[(1 - band) / 2, (1 + band) / 2] for band in BANDS]).ravel()
    at = np.rint(100 * ends).astype(int) - 1

    def below(q: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(np.clip(ends, (q[:, at] > y[:, None]).mean(axis=0), (q[:, at] >= y[:, None]).mean(axis=0)))

    ours = np.mean([below(q, case.y) for case, q in zip(cases, found, strict=True)], axis=0).reshape(-1, 2)
    raw = np.mean([below(case.quantiles, case.y) for case in cases], axis=0).reshape(-1, 2)
    for band, (low, high), (raw_low, raw_high) in zip(BANDS, ours, raw, strict=True):
        note = f"below {low:.4f}, above {1 - high:.4f}; base forecast {raw_high - raw_low:.4f}"
        gap = max(abs(low - (1 - band) / 2), abs(1 - high - (1 - band) / 2))
        yield Line(f"{band:.0%} bands, {len(cases)} streams", "largest error of a side", gap, 0.005, note=note)


def _late(cases: list[Case]) -> Lines:
    yield Remark("outcomes in batches of 50, 2 batches late:")
    for case in cases:
        reveal = batches(case.y.size)
        raw, ours = score(case, case.quantiles), score(case, run_case(case, reveal)[0])
        newest = np.searchsorted(reveal, np.arange(case.y.size), side="right") - 1
        last = relative(last_known(case.y, newest, LEVELS, case.low), case.quantiles, case.y, LEVELS)
        note = f"QCE {ours.qce:.4f} (base {raw.qce:.4f}); last known outcome {last:.2f}"
        yield Line(case.name, "pinball / base forecast's, late", ours.relative, 1.01, form=".3f", note=note)


def _events(files: list[Path]) -> Lines:
    """Probabilities of events: ECE and Brier score."""
    for file in files:
        with np.load(file, allow_pickle=False) as arrays:
            raw, y = np.asarray(arrays["p"], dtype=np.float64), np.asarray(arrays["y"], dtype=np.float64)
        recal = oc.Recalibrator(oc.Binary())
        p = recal.run(raw, y).ravel()
        for column, ours, base in (
            ("ece", ece(p, y), ece(raw, y)),
            ("brier", float(brier(p, y).mean()), float(brier(raw, y).mean())),
        ):
            note = f"base forecast {base:.4f}; held {recal.guarantee.held:.1%}"
            yield Line(f"{file.stem}, {y.size:,} rounds", column, ours, note=note)
