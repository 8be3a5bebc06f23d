"""What is called chance is what chance is: intervals of overlapping forecasts and of series that move together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri

from orcast.evaluate import (
    Evaluation,
    band,
    check,
    coverage,
    difference,
    verdict,
)
from orcast.evaluate.calibration import interval_band, reliability
from orcast.evaluate.verdicts import effective_size, faults
from pages import action

Vector = NDArray[np.float64]
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
TIMES, SERIES, AHEAD = 300, 20, 12
TRIALS = 200


def errors(rng: np.random.Generator, times: int = TIMES, series: int = SERIES, ahead: int = AHEAD) -> Vector:
    """Standard normal errors, time x series: sums of the shocks of the steps ahead, half of them common to all."""
    shocks = rng.normal(size=(times + ahead, 1)) + rng.normal(size=(times + ahead, series))
    paths = np.concatenate((np.zeros((1, series)), np.cumsum(shocks, axis=0)))
    return (paths[ahead : ahead + times] - paths[:times]) / np.sqrt(2 * ahead)


def forecasts_of(e: Vector, *, ahead: int = AHEAD, after: Vector | None = None) -> Evaluation:
    """Forecasts N(0, 1) of these errors, which are calibrated."""
    times, series = e.shape
    q = np.tile(ndtri(LEVELS), (e.size, 1))
    return Evaluation.of(
        q,
        e.T.ravel(),
        after=None if after is None else q + after.T.reshape(-1, 1),
        levels=LEVELS,
        series=np.repeat(np.arange(series), times),
        time=np.tile(np.arange(times), series),
        overlap=ahead - 1,
    )


def test_chance_is_what_chance_is() -> None:
    """Calibrated forecasts 12 steps ahead of 20 series with common shocks: chance is exceeded in 5 of 100 cases."""
    rng = np.random.default_rng(1)
    inside = {"90%": 0, "50%": 0, "levels": 0, "as if independent": 0, "faultless": 0}
    for _ in range(TRIALS):
        evaluation = forecasts_of(errors(rng))
        for name, share in (("90%", 0.9), ("50%", 0.5)):
            low, high = interval_band(evaluation, share)
            inside[name] += low <= coverage(evaluation, share) <= high
        low, high = map(float, band(evaluation.rows, 0.9))
        inside["as if independent"] += low <= coverage(evaluation, 0.9) <= high
        inside["levels"] += 1 - reliability(evaluation).outside / LEVELS.size
        inside["faultless"] += not faults(evaluation)
    rates = {name: count / TRIALS for name, count in inside.items()}
    assert all(rates[name] >= 0.9 for name in ("90%", "50%", "levels")), rates
    # not so wide that anything passes
    assert rates["as if independent"] < 0.5
    assert rates["faultless"] > 0.9


@pytest.mark.parametrize(("ahead", "times", "series"), [(1, TIMES, SERIES), (AHEAD, TIMES, SERIES), (1, 12, 30)])
def test_the_interval_of_a_change_holds_what_changed(ahead: int, times: int, series: int) -> None:
    """A shift by an own error makes forecasts better in a common phase and worse in another: on average nothing."""
    rng = np.random.default_rng(2)
    held = 0
    shift, q = 0.3, ndtri(LEVELS)
    grid = np.linspace(-8, 8, 4001)
    weights = np.exp(-(grid**2) / 2)
    gaps = grid[:, None] - q
    pinball = np.maximum(LEVELS * gaps, (LEVELS - 1) * gaps).mean(axis=1)
    moved = grid[:, None] - q - shift
    after = np.maximum(LEVELS * moved, (LEVELS - 1) * moved).mean(axis=1)
    truth = float((weights * after).sum() / (weights * pinball).sum() - 1.0)
    for _ in range(TRIALS):
        e = errors(rng, times, series, ahead)
        found = difference(forecasts_of(e, ahead=ahead, after=np.full(e.shape, shift)))
        assert found is not None
        held += found.relative_low <= truth <= found.relative_high
    assert 0.9 <= held / TRIALS <= 0.995


@pytest.mark.parametrize("by", ["time", "cutoff"])
def test_one_date_is_one_observation(by: str) -> None:
    """Series share the errors of a date, and steps ahead those of an issue time: 7 are too few, 40 are not."""
    for many, series, decided in ((4, 30, False), (7, 200, False), (40, 30, True)):
        rng = np.random.default_rng(many)
        steps = 1 if by == "time" else 6
        issue, name, step = (a.ravel() for a in np.meshgrid(range(many), range(series), range(1, steps + 1)))
        y = (rng.normal(size=many) + 3.0)[issue] + rng.normal(size=issue.size)
        frame = {"unique_id": name, "ds": steps * issue + step, "cutoff": steps * issue, "y": y}
        frame |= {f"q{a}": np.full(y.size, ndtri(a)) for a in LEVELS}
        (base,) = check(pl.DataFrame(frame))
        for evaluation in (base, replace(base, after=base.before + 3.0)):
            text = " ".join(verdict(evaluation))
            assert (action(evaluation) != "not enough data") == decided, text
            assert (f"{y.size:,} outcomes of {many} distinct times, a verdict needs 8." in text) != decided
            assert effective_size(evaluation) < (0.2 * y.size if decided else many + 1)
            found = difference(evaluation)
            assert found is None or np.isnan(found.relative_low) != decided


def test_real_faults_are_still_found() -> None:
    rng = np.random.default_rng(3)
    found = [faults(forecasts_of(1.6 * errors(rng, times=600))) for _ in range(40)]
    assert sum("too narrow" in " ".join(each) for each in found) >= 38
    better = [difference(forecasts_of(e + 1.5, after=np.full(e.shape, 1.5))) for e in [errors(rng)] * 20]
    assert all(each is not None and each.clear and each.relative < 0 for each in better)


def test_errors_that_last_widen_the_band_of_one_series() -> None:
    """Nobody said that the forecasts overlap: their errors show it; of independent ones nothing is widened."""
    e = errors(np.random.default_rng(5), series=1, times=1000)
    lasting, mixed = forecasts_of(e, ahead=1), forecasts_of(np.random.default_rng(0).permutation(e), ahead=1)
    narrow, wide = band(1000, 0.5), interval_band(lasting, 0.5)
    assert wide[1] - wide[0] > 1.5 * float(narrow[1] - narrow[0])
    assert effective_size(lasting) < 600
    assert " ".join(verdict(lasting)).count("effective sample size") == 1
    assert interval_band(mixed, 0.5) == tuple(map(float, narrow))
    assert "effective sample size" not in " ".join(verdict(mixed))
