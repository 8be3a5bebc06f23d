"""Probabilities: experts that are too sure, not sure enough, drifting or perfect, and real streams."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

import orcast as oc
from benchmarks import yardstick
from benchmarks.results import Line, Remark
from orcast.metrics import brier, ece

TITLE = "Binary outcomes: default settings"
ROUNDS, SEEDS, QUICK_ROUNDS, QUICK_SEEDS = 5000, 20, 1000, 3
ECE_LIMIT, WORST_LIMIT = 1.2, 1.005
PERFECT = "perfect"

Vector = NDArray[np.float64]


def sigmoid(x: Vector) -> Vector:
    return 1.0 / (1.0 + np.exp(-x))


def experts(truth: Vector) -> dict[str, Vector]:
    """What each expert says where the true log odds are given."""
    t = np.arange(truth.size) / truth.size
    drift = 0.8 * np.sin(2.0 * np.pi * 2.0 * t) + np.where(t > 0.6, 1.0, 0.0)
    return {
        "over-confident": sigmoid(2.0 * truth),
        "under-confident": sigmoid(0.5 * truth),
        "drifting": sigmoid(truth + drift),
        PERFECT: sigmoid(truth),
    }


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    rounds, seeds = (QUICK_ROUNDS, QUICK_SEEDS) if quick else (ROUNDS, SEEDS)
    yield Remark(
        f"{rounds:,} rounds, {seeds} seeds; ECE over 15 bins, relative to a perfect forecaster's, same outcomes"
    )
    seen: dict[str, list[tuple[float, ...]]] = {}
    oc.Recalibrator(oc.Binary()).run([0.5, 0.5], [0, 1])  # compiles, if it has to
    begin, played = perf_counter(), 0
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        truth = rng.normal(-0.3, 1.3, rounds)
        perfect = sigmoid(truth)
        y = (rng.random(rounds) < perfect).astype(np.float64)
        for name, expert in experts(truth).items():
            recal = oc.Recalibrator(oc.Binary())
            p = recal.run(expert, y).ravel()
            losses = [float(brier(each, y).mean()) for each in (p, expert, perfect)]
            errors = [ece(each, y) for each in (p, expert, perfect)]
            seen.setdefault(name, []).append((*losses, *errors, recal.guarantee.held))
            played += rounds
    each = 1e6 * (perf_counter() - begin) / played
    for name, rows in seen.items():
        ours, theirs, best, error, expert_error, chance, held = np.array(rows).T
        note = f"ECE {error.mean():.4f}, perfect forecaster {chance.mean():.4f}, expert {expert_error.mean():.4f}"
        yield Line(name, "mean ECE / perfect's", float(error.mean() / chance.mean()), ECE_LIMIT, form=".3f", note=note)
        note = f"perfect forecaster {float((best / theirs).mean()):.4f}; held {held.mean():.2%}"
        relative = ours / theirs
        goal = None if name == PERFECT else 1.0
        yield Line(name, "Brier / expert's, mean", float(relative.mean()), goal, "<", note=note)
        yield Line(name, "Brier / expert's, worst seed", float(relative.max()), WORST_LIMIT)
    yield Line("run, all of it", "microseconds a round", each, form=".0f")
    yield from real_streams()


def real_streams() -> Iterator[Line | Remark]:
    place = os.environ.get(yardstick.VARIABLE)
    files = [file for file in yardstick.stream_files(Path(place)) if file.name.startswith("bin_")] if place else []
    if not files:
        yield Remark(f"real streams skipped: {yardstick.VARIABLE} names no folder with any")
        return
    assert place is not None
    table = Path(place) / "results.csv"
    best = {column: yardstick.best_of(table, "bin", column) for column in ("ece", "brier")}
    yield Remark("real streams, limits: the best of the other methods, each by its own measure")
    for file in files:
        with np.load(file, allow_pickle=False) as arrays:
            expert, y = np.asarray(arrays["p"], dtype=np.float64), np.asarray(arrays["y"], dtype=np.float64)
        recal = oc.Recalibrator(oc.Binary())
        p = recal.run(expert, y).ravel()
        for column, what, ours, theirs in (
            ("ece", "ECE", ece(p, y), ece(expert, y)),
            ("brier", "Brier", float(brier(p, y).mean()), float(brier(expert, y).mean())),
        ):
            method, limit = best[column].get(file.stem, ("", None))
            note = f"{method or 'no other method'}; expert {theirs:.4f}"
            note += f"; held {recal.guarantee.held:.1%}" if column == "ece" else f"; relative {ours / theirs:.3f}"
            yield Line(f"{file.stem}, {y.size:,} rounds", what, ours, limit, note=note)
