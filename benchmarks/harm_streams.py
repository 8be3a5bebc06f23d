"""Real streams in "do no harm": the yardstick's and those of the table, at once and late, and wind a day ahead."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import orcast as oc
from benchmarks import known, yardstick
from benchmarks.harm_rivals import last_known, multiqt, relative
from benchmarks.quality import as_case
from benchmarks.results import Line, Remark, geometric_mean
from benchmarks.streams import BATCH, LATE, Case, Score, batches, play, score
from orcast import datasets as experts
from orcast.metrics import LEVELS, pinball, qce, worst_rolling_qce
from orcast.paper.experiments import data

Vector = NDArray[np.float64]

QCE_LIMIT, WORST_LIMIT, PINBALL_LIMIT = 0.0020, 0.20, 0.695
SIDE_LIMIT, LATE_LIMIT = 0.005, 1.000
WIND_LIMIT, MONTH_LIMIT = 0.97, 1.01
# Prototypes of the method are no rivals.
PROTOTYPE = "proto"
BANDS = (0.5, 0.9, 0.98)
NO_DATA = f"skipped, {data.VARIABLE} names no folder with it"


def yardstick_cases(folder: Path | None, quick: bool) -> list[Case]:
    """The yardstick's streams of quantities."""
    if folder is None:
        return []
    files = [file for file in yardstick.stream_files(folder) if not file.name.startswith(yardstick.BINARY)]
    return [shortened(yardstick.read(file), quick) for file in files]


def table_cases(quick: bool) -> list[Case]:
    """The four streams of the table, if their data are there."""
    names = [name for name in ("wind", "sunspots") if name in data.available()]
    cases = [as_case(experts.stream(data.load(name), expert)) for name in names for expert in experts.EXPERTS]
    return [shortened(case, quick) for case in cases]


def shortened(case: Case, quick: bool, rounds: int = 600) -> Case:
    if not quick:
        return case
    return replace(case, forecasts=case.forecasts[:rounds], quantiles=case.quantiles[:rounds], y=case.y[:rounds])


def one_step_rival(case: Case) -> float:
    """The last outcome with its spread, pinball / expert's."""
    q = last_known(case.y, np.arange(case.y.size) - 1, LEVELS, low=case.low)
    return relative(q, case.quantiles, case.y, LEVELS)


def best_rival(file: Path, cases: list[Case]) -> str:
    """The other method with the least pinball loss over all streams, from the yardstick's table."""
    losses: dict[str, dict[str, float]] = {}
    if file.is_file():
        with file.open(newline="", encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                if row.get("kind") == "reg" and row.get("pinball"):
                    losses.setdefault(row["method"], {})[row["stream"]] = float(row["pinball"])
    raw = losses.pop("raw", {})
    names = [case.name for case in cases if case.name in raw]
    found = {
        method: geometric_mean(each[name] / raw[name] for name in names)
        for method, each in losses.items()
        if names and not method.startswith((*yardstick.OURS, PROTOTYPE)) and all(name in each for name in names)
    }
    if not found:
        return "no other method's scores"
    best = min(found, key=lambda method: found[method])
    return f"best other {best} {found[best]:.3f}"


def chance(cases: list[Case], draws: int = 5) -> tuple[float, float]:
    """QCE and worst rolling QCE of calibrated forecasts of as many outcomes, geometric means."""
    rng = np.random.default_rng(0)
    errors, worst = [], []
    for case in cases:
        q = np.tile(LEVELS, (case.y.size, 1))
        pits = [rng.random(case.y.size) for _ in range(draws)]
        errors.append(float(np.mean([qce(q, pit) for pit in pits])))
        worst.append(float(np.mean([worst_rolling_qce(q, pit) for pit in pits])))
    return geometric_mean(errors), geometric_mean(worst)


def one_step(folder: Path | None, quick: bool) -> Iterator[Line | Remark]:
    """The yardstick's streams."""
    cases = yardstick_cases(folder, quick)
    if folder is None or not cases:
        yield Remark("yardstick: skipped, there is no folder of streams")
        return
    ours: list[Score] = [score(case, play(case, case.reveal)[0]) for case in cases]
    raw = [score(case, case.quantiles) for case in cases]
    errors, worst = chance(cases)
    case = f"yardstick, {len(cases)} streams"
    note = f"expert {geometric_mean(s.qce for s in raw):.4f}; chance {errors:.4f}"
    yield Line(case, "QCE", geometric_mean(s.qce for s in ours), QCE_LIMIT, note=note)
    note = f"expert {geometric_mean(s.worst for s in raw):.2f}; chance {worst:.3f}"
    value = geometric_mean(s.worst for s in ours)
    yield Line(case, "worst rolling-200 QCE", value, WORST_LIMIT, form=".3f", note=note)
    note = (
        f"streams {', '.join(f'{s.relative:.3f}' for s in ours)}; {best_rival(folder / 'results.csv', cases)}; "
        f"last known outcome {geometric_mean(one_step_rival(each) for each in cases):.3f}"
    )
    value = geometric_mean(s.relative for s in ours)
    yield Line(case, "pinball / expert's", value, PINBALL_LIMIT, form=".3f", note=note)


def below(q: Vector, y: Vector, levels: Vector) -> Vector:
    """The share of outcomes below the quantile at each level, ties in favour of the forecast."""
    at_most, less = (q >= y[:, None]).mean(axis=0), (q > y[:, None]).mean(axis=0)
    return np.clip(levels, less, at_most)


def coverage(folder: Path | None, quick: bool) -> Iterator[Line | Remark]:
    """What lies below and above bands, in the mean over streams."""
    cases = yardstick_cases(folder, quick) + table_cases(quick)
    if not cases:
        yield Remark("coverage: skipped, there are no streams")
        return
    ends = np.array([[(1 - band) / 2, (1 + band) / 2] for band in BANDS])
    at = np.rint(100 * ends.ravel()).astype(int) - 1
    ours = np.mean([below(play(c, c.reveal)[0][:, at], c.y, LEVELS[at]) for c in cases], axis=0).reshape(-1, 2)
    raw = np.mean([below(c.quantiles[:, at], c.y, LEVELS[at]) for c in cases], axis=0).reshape(-1, 2)
    for band, (low, high), (raw_low, raw_high) in zip(BANDS, ours, raw, strict=True):
        outside = (1 - band) / 2
        case = f"{band:.0%} bands, {len(cases)} streams"
        held = f"band holds {high - low:.4f}, expert's {raw_high - raw_low:.4f}"
        for side, share, other in (("below", low, raw_low), ("above", 1 - high, 1 - raw_high)):
            note = f"{share:.4f} are {side}, expert's {other:.4f}; {held}"
            yield Line(case, f"{side}, distance from {outside:g}", abs(share - outside), SIDE_LIMIT, note=note)


def late(folder: Path | None, quick: bool) -> Iterator[Line | Remark]:
    """Each stream with outcomes in batches."""
    cases = [case for case in table_cases(quick) + yardstick_cases(folder, quick) if case.reveal is None]
    if not cases:
        yield Remark("late: skipped, there are no streams")
        return
    yield Remark(f"outcomes in batches of {BATCH}, {LATE} batches late:")
    for case in cases:
        reveal = batches(case.y.size)
        before, after = score(case, case.quantiles), score(case, play(case, reveal)[0])
        newest = np.searchsorted(reveal, np.arange(case.y.size), side="right") - 1
        last = relative(last_known(case.y, newest, LEVELS, low=case.low), case.quantiles, case.y, LEVELS)
        note = f"last known outcome {last:.2f}; QCE {after.qce:.3f}, expert {before.qce:.3f}"
        yield Line(case.name, "pinball / expert's, late", after.relative, LATE_LIMIT, form=".4f", note=note)


def wind(folder: Path | None, quick: bool) -> Iterator[Line | Remark]:
    """Hourly wind a day ahead, issued at 10:00."""
    if "wind" not in data.available():
        yield Remark(f"wind: {NO_DATA}")
        return
    frame, times = known.wind_day_ahead()
    frame = frame.head(24 * 100) if quick else frame
    levels, y = known.LEVELS, frame["y"].to_numpy(np.float64)
    out = oc.recalibrate(frame, low=0, **times)
    raw = np.maximum(frame[known.NAMES].to_numpy(np.float64), 0.0)
    ours = out[[f"orcast_{name}" for name in known.NAMES]].to_numpy(np.float64)
    losses = {"ours": pinball(ours, y, levels), "raw": pinball(raw, y, levels)}
    hours = np.arange(y.size)
    last = relative(last_known(y, hours // 24 * 24 - 15, levels, low=0.0), raw, y, levels)
    note = f"last known outcome {last:.3f}, MultiQT {relative(_hour_by_hour(y, raw, levels), raw, y, levels):.3f}"
    value = float(losses["ours"].mean() / losses["raw"].mean())
    yield Line("hourly wind, day ahead at 10:00", "pinball / raw", value, WIND_LIMIT, form=".3f", note=note)
    month = frame["ds"].dt.month.to_numpy()
    each = [
        float(losses["ours"][month == m].sum() / losses["raw"][month == m].sum()) for m in np.unique(month).tolist()
    ]
    note = f"months {', '.join(f'{ratio:.3f}' for ratio in each)}"
    yield Line("hourly wind, day ahead at 10:00", "worst month", max(each), MONTH_LIMIT, form=".3f", note=note)


def _hour_by_hour(y: Vector, raw: Vector, levels: Vector) -> Vector:
    """MultiQT for each hour; those from 10:00 on are known a day later."""
    q = np.empty_like(raw)
    for hour in range(24):
        q[hour::24] = multiqt(y[hour::24], raw[hour::24], levels, late=int(hour >= 10))
    return q
