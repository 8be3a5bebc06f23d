"""Evaluations: every number against a slow twin, chance bands by simulation, and the verdict."""

import dataclasses
import re
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import binom, norm, poisson

from helpers import SENTENCE
from orcast.evaluate import (
    Evaluation,
    band,
    by_horizon,
    by_series,
    check,
    coverage,
    dependence,
    difference,
    error,
    loss,
    metrics,
    plots,
    verdict,
)
from orcast.evaluate.calibration import interval_band, main_share, reliability, shares, width
from orcast.evaluate.verdicts import faults
from pages import action, headline, horizons

Vector = NDArray[np.float64]
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


@st.composite
def evaluations(draw: st.DrawFn) -> Evaluation:
    """Quantiles that tie with outcomes and bounds, in a few series."""
    levels = np.array(sorted(draw(st.sets(st.sampled_from([0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]), min_size=1))))
    rows = draw(st.integers(1, 12))

    def numbers(size: int, low: int = 0, high: int = 4) -> Vector:
        return np.array(draw(st.lists(st.integers(low, high), min_size=size, max_size=size)), dtype=np.float64)

    before, after = (np.sort(numbers(rows * levels.size).reshape(rows, -1), axis=1) for _ in range(2))
    return Evaluation.of(
        before,
        numbers(rows),
        after=after if draw(st.booleans()) else None,
        levels=levels,
        series=draw(st.lists(st.sampled_from("abc"), min_size=rows, max_size=rows)),
        low=numbers(rows, -1, 0),
        high=numbers(rows, 4, 5),
    )


def slow_frequencies(evaluation: Evaluation, side: str) -> list[float]:
    """Frequency nearest to each level between those of y < q and of y <= q."""
    found = []
    for q, level in zip(evaluation.side(side).T, evaluation.levels, strict=True):
        below, upto = (evaluation.y < q).mean(), (evaluation.y <= q).mean()
        found.append(float(below if level < below else upto if level > upto else level))
    return found


def normal(rows: int, seed: int = 0, levels: Vector = LEVELS) -> tuple[Vector, Vector]:
    """Quantiles of a standard normal distribution, and outcomes from it."""
    return np.tile(ndtri(levels), (rows, 1)), np.random.default_rng(seed).normal(size=rows)


# --- numbers against slow twins


@given(evaluations())
def test_frequencies_coverage_and_error(evaluation: Evaluation) -> None:
    for side in evaluation.sides:
        frequencies = slow_frequencies(evaluation, side)
        np.testing.assert_allclose(dependence.frequencies(evaluation, side), frequencies, atol=1e-12)
        assert error(evaluation, side) == pytest.approx(((frequencies - evaluation.levels) ** 2).sum())
        q, y = evaluation.side(side), evaluation.y
        np.testing.assert_allclose(loss(evaluation, side), metrics.pinball(q, y, evaluation.levels))
        for share in shares(evaluation.levels):
            lower, upper = (int(np.abs(evaluation.levels - a).argmin()) for a in ((1 - share) / 2, (1 + share) / 2))
            within = (q[:, lower] <= y) & (y <= q[:, upper])
            assert coverage(evaluation, share, side) == pytest.approx(within.mean())
            assert width(evaluation, share, side) == pytest.approx((q[:, upper] - q[:, lower]).mean())


@given(evaluations())
def test_series_by_series(evaluation: Evaluation) -> None:
    table = by_series(evaluation)
    assert sorted(table["series"]) == sorted({evaluation.names[i] for i in evaluation.series})
    side, share = evaluation.sides[-1], main_share(evaluation.levels)
    worst = table[f"loss_{side}"] if share is None else np.abs(table[f"coverage_{side}"] - share)
    assert (np.diff(worst) <= 1e-12).all()
    for i, name in enumerate(table["series"]):
        mine = evaluation.series == evaluation.names.index(name)
        alone = Evaluation.of(
            evaluation.before[mine],
            evaluation.y[mine],
            after=None if evaluation.after is None else evaluation.after[mine],
            levels=evaluation.levels,
            low=evaluation.low[mine],
            high=evaluation.high[mine],
        )
        assert table["outcomes"][i] == alone.rows
        assert table["loss_before"][i] == pytest.approx(loss(alone).mean())
        if share is not None:
            assert table["coverage_before"][i] == pytest.approx(coverage(alone, share))


@given(st.integers(0, 3000), st.floats(0.0, 1.0))
def test_band_is_binomial(rows: int, p: float) -> None:
    low, high = band(rows, p)
    if rows == 0:
        assert (float(low), float(high)) == (0.0, 1.0)
    elif 1e-9 < p < 1 - 1e-9:
        assert (float(low) * rows, float(high) * rows) == pytest.approx(
            (binom.ppf(0.025, rows, p), binom.ppf(0.975, rows, p))
        )
    else:
        assert float(low) == pytest.approx(p, abs=1e-6)
        assert float(high) == pytest.approx(p, abs=1e-6)


# --- probabilities


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), min_size=1, max_size=30))
def test_probabilities(rounds: list[tuple[int, int]]) -> None:
    k, y = np.array(rounds).T
    p, came = k / 30, (y > 0).astype(float)
    evaluation = Evaluation.of(p, came, after=p[::-1])
    assert error(evaluation) == pytest.approx(metrics.ece(p, came))
    assert error(evaluation, "after") == pytest.approx(metrics.ece(p[::-1], came))
    np.testing.assert_allclose(loss(evaluation), metrics.brier(p, came))
    found, bins = reliability(evaluation), np.minimum((p * 15).astype(int), 14)
    np.testing.assert_allclose(found.nominal, [p[bins == b].mean() for b in np.unique(bins)])
    np.testing.assert_allclose(found.observed, [came[bins == b].mean() for b in np.unique(bins)], atol=1e-12)
    rows = np.stack([p / 2, 1 - p, p / 2], axis=1)
    of_labels = Evaluation.of(rows, y, labels=("x", "y", "z"))
    assert error(of_labels) == pytest.approx(np.mean([metrics.ece(rows[:, j], (y == j) * 1.0) for j in range(3)]))
    np.testing.assert_allclose(loss(of_labels), ((rows - (y[:, None] == np.arange(3))) ** 2).sum(axis=1))


# --- accuracy


def test_difference_of_losses() -> None:
    q, y = normal(400)
    evaluation = Evaluation.of(q / 3, y, after=q, levels=LEVELS)
    found = difference(evaluation)
    assert found is not None
    before, after = (metrics.pinball(rows, y, LEVELS).mean() for rows in (q / 3, q))
    assert (found.before, found.after) == pytest.approx((before, after))
    assert found.relative == pytest.approx(after / before - 1)
    assert found.relative_low < found.relative < found.relative_high < 0.0
    assert found.clear
    assert found == difference(evaluation)
    same = difference(Evaluation.of(q, y, after=q, levels=LEVELS))
    assert same is not None
    assert (same.relative, same.relative_low, same.relative_high, same.clear) == (0.0, 0.0, 0.0, False)
    assert difference(Evaluation.of(q, y, levels=LEVELS)) is None
    few = difference(Evaluation.of(q[:6], y[:6], after=q[:6], levels=LEVELS))
    assert few is not None
    assert np.isnan(few.relative_low)
    assert not few.clear
    assert not dataclasses.replace(found, relative_high=0.01).clear


def test_whole_series_are_resampled_in_panels() -> None:
    """Twenty series whose losses move together: blocks of time would find far too small an interval."""
    rng = np.random.default_rng(4)
    shift = np.repeat(rng.normal(size=30), 50)
    y = np.zeros(1500)
    after, series = 1 + 0.1 * shift[:, None], np.repeat(np.arange(30), 50)
    evaluation = Evaluation.of(np.ones((1500, 1)), y, after=after, levels=[0.5], series=series)
    found = difference(evaluation)
    assert found is not None
    means = 0.1 * shift[::50]
    width = found.relative_high - found.relative_low
    assert width == pytest.approx(2 * 1.96 * means.std() / np.sqrt(30), rel=0.2)


# --- verdict


def said(evaluation: Evaluation) -> str:
    lines = verdict(evaluation)
    assert all(re.fullmatch(r"[A-Z0-9'].*\.", line) and "\n" not in line for line in lines), lines
    assert len(lines) <= 12
    return " ".join(lines)


def test_faults_of_quantiles() -> None:
    q, y = normal(800)
    cases = {
        "the 90% interval is too narrow and the 50% interval is too narrow": q / 2,
        "the 90% interval is too wide and the 50% interval is too wide": q * 2,
        "the forecasts are too low": q - 0.5,
        "the forecasts are too high": q + 0.5,
        "Use these forecasts": q,
    }
    for words, rows in cases.items():
        evaluation = Evaluation.of(rows, y, levels=LEVELS)
        assert words in headline(evaluation)
        assert sum(other in headline(evaluation) for other in cases) == 1
        assert action(evaluation) == ("use" if rows is q else "do not use")
        said(evaluation)
    assert faults(Evaluation.of((q - 0.5)[:, 3:], y, levels=LEVELS[3:])) == [
        "the quantiles are off at the levels 75%, 95%"
    ]
    found = reliability(Evaluation.of(q, y, levels=LEVELS))
    np.testing.assert_allclose(found.observed, (y[:, None] <= q).mean(axis=0))
    np.testing.assert_allclose(found.low, binom.ppf(0.025, 800, LEVELS) / 800)
    assert found.outside == 0
    # many outcomes do not make trifles faults
    q, y = normal(100_000)
    trifle = Evaluation.of(1.008 * q + 0.006, y, levels=LEVELS)
    assert reliability(trifle).outside > 0
    assert action(trifle) == "use"


def test_ties_are_no_faults() -> None:
    """A perfect forecaster of counts is calibrated, and the coverage is the plain count; wrong ones are still found."""
    levels = np.array([0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975])
    rng = np.random.default_rng(0)
    cases = {
        "Use these forecasts": rng.poisson(1.5, 4500),
        "too low": rng.poisson(2.2, 4500),
        "too high": rng.poisson(0.5, 4500),
        "too narrow": rng.negative_binomial(0.5, 0.25, 4500),
        "too wide": rng.integers(1, 3, 4500),
    }
    q = np.tile(poisson(1.5).ppf(levels), (4500, 1))
    for words, counts in cases.items():
        evaluation = Evaluation.of(q, counts, levels=levels, low=0)
        assert words in headline(evaluation)
        covered = ((q[0, 0] <= counts) & (counts <= q[0, -1])).mean()
        assert coverage(evaluation, 0.95) == pytest.approx(covered)
        low, high = interval_band(evaluation, 0.95)
        assert (low <= covered <= high) == ("the 95% interval is" not in headline(evaluation))
        assert f"The 95% interval covered {covered:.1%} of 4,500 outcomes" in said(evaluation)
    right = Evaluation.of(q, cases["Use these forecasts"], levels=levels)
    assert error(right) == reliability(right).outside == 0


def test_faults_of_probabilities() -> None:
    rng = np.random.default_rng(6)
    p = rng.uniform(size=3000)
    y = rng.uniform(size=3000) < p
    cases = {
        "the probabilities are too low by": p * 0.8,
        "the probabilities are too high by": 0.2 + p * 0.8,
        "the probabilities are too extreme": np.clip(1.6 * p - 0.3, 0, 1),
        "the probabilities are too cautious": 0.25 + p / 2,
    }
    for words, rows in cases.items():
        assert words in " ".join(faults(Evaluation.of(rows, y)))
        said(Evaluation.of(rows, y))
    assert faults(Evaluation.of(p, y)) == []
    assert "Brier score" in said(Evaluation.of(p * 0.8, y, after=p, timed=True))


def test_decision_on_recalibrated_forecasts() -> None:
    q, y = normal(1000)
    for before, after, decision in (
        (q / 3, q, "use"),
        (q, q / 3, "do not use"),
        (q, q * 1.001, "do not use"),  # not needed
    ):
        evaluation = Evaluation.of(before, y, after=after, levels=LEVELS, timed=True)
        assert action(evaluation) == decision, headline(evaluation)
        said(evaluation)
    text = said(Evaluation.of(q / 3, y, after=q, levels=LEVELS))
    assert text.startswith("Cannot decide without issue times: the pinball loss is up to ")
    assert "If so, pass issued_every=1. If not, name the column of issue times (cutoff=)" in text
    assert "95% interval -" not in text
    few = Evaluation.of(q[:6], y[:6], after=q[:6], levels=LEVELS, timed=True)
    empty = Evaluation.of(q[:0], y[:0], levels=LEVELS)
    for each in (few, empty):
        assert action(each) == "not enough data"
        assert headline(each).startswith("Not enough data")


def test_harm_at_one_horizon_is_empirical_and_named_first() -> None:
    evaluation = horizons()
    found = difference(evaluation)
    table = by_horizon(evaluation)
    assert found is not None
    assert found.clear
    assert found.relative < 0.0  # better on average
    assert (table["change_low"] > 0.0).tolist() == [False, True, False]
    worse = sum(
        loss(evaluation, "after")[mine].mean() > loss(evaluation, "before")[mine].mean()
        for k in range(53)
        for mine in [(evaluation.series == k) & (evaluation.horizon == 2)]
    )
    assert table["worse"][1] == worse
    assert f"except where they are worse in {worse} of 53 series at horizon 2" in headline(evaluation)


def test_majority_of_series_made_worse_is_harm_though_the_mean_is_better() -> None:
    """One large series gains more than 30 small ones lose."""
    rng = np.random.default_rng(0)
    scale = np.repeat([1000.0, *np.ones(30)], 80)[:, None]
    q, y = np.tile(ndtri(LEVELS), (31 * 80, 1)), rng.normal(size=31 * 80)
    large = scale[:, 0] > 1.0
    before, after = np.where(large[:, None], 3.0 * q, q), np.where(large[:, None], q, 3.0 * q)
    evaluation = Evaluation.of(
        scale * before,
        scale[:, 0] * y,
        after=scale * after,
        levels=LEVELS,
        series=np.repeat(np.arange(31), 80),
        timed=True,
    )
    found = difference(evaluation)
    assert found is not None
    assert found.relative < 0.0
    assert action(evaluation) == "do not use"
    assert "worse in 30 of 31 series" in headline(evaluation)


def test_reference_that_is_better_is_the_verdict() -> None:
    y = np.cumsum(np.random.default_rng(1).normal(size=800))
    q = np.tile(y.std() * ndtri(LEVELS) + y.mean(), (800, 1))
    evaluation = Evaluation.of(q, y, after=0.9 * q, levels=LEVELS, timed=True)
    assert headline(evaluation).startswith(
        "Do not use these forecasts: the best reference, the last known outcome, has"
    )
    assert action(Evaluation.of(q, y, levels=LEVELS, timed=True)) == "do not use"
    # without issue times the last outcome may not have been known
    assert "the last known outcome" not in headline(Evaluation.of(q, y, levels=LEVELS))


def test_evaluation_is_checked() -> None:
    q, y = normal(5)
    bad: list[tuple[Any, dict[str, Any]]] = [
        ((q, y[:4]), {"levels": LEVELS}),
        ((q, y), {"levels": LEVELS[:4]}),
        ((q, y), {"levels": LEVELS, "after": q[:, :4]}),
        ((q, y), {"levels": LEVELS, "time": [1, 2]}),
        ((q, y), {"levels": LEVELS, "promised": np.zeros(4)}),
        ((q, y * np.nan), {"levels": LEVELS}),
        ((q + np.inf, y), {"levels": LEVELS}),
        (([0.5, 1.5], [0, 1]), {}),
        (([0.5, 0.5], [0, 2]), {}),
        (([[0.5, 0.5]], [2]), {"labels": ("a", "b")}),
        (([[0.5, 0.5]], [0.5]), {"labels": ("a", "b")}),
    ]
    for given_, rest in bad:
        with pytest.raises(ValueError, match=SENTENCE):
            Evaluation.of(*given_, **rest)
    evaluation = Evaluation.of(q, y, levels=LEVELS)
    for wrong in (
        lambda: coverage(evaluation, 0.8),
        lambda: coverage(evaluation, 0.9, "after"),
        lambda: error(evaluation, "later"),
        lambda: plots.fan(Evaluation.of([0.5], [1])),
    ):
        with pytest.raises(ValueError, match=SENTENCE):
            wrong()


# --- frames


def nixtla(rows: int = 60, seed: int = 0) -> dict[str, Any]:
    """Two series in a shuffled order, with gaps in outcomes and forecasts."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=rows)
    data: dict[str, Any] = {
        "unique_id": np.where(np.arange(rows) % 2, "b", "a"),
        "ds": np.datetime64("2024-01-01") + np.arange(rows) // 2,
        "y": y,
        "M": np.zeros(rows),
        "M-lo-90": np.full(rows, -1.0),
        "M-hi-90": np.full(rows, 1.0),
        "M_orcast": np.full(rows, 0.1),
        "M_orcast-lo-90": np.full(rows, -1.645),
        "M_orcast-hi-90": np.full(rows, 1.645),
        "M_orcast-lo-50": np.full(rows, -0.6),
        "M_orcast_holds": np.ones(rows, dtype=bool),
        "M_orcast_promised": np.linspace(1, 0.1, rows),
        "M_orcast_miscalibration": np.linspace(0.5, 0.05, rows),
        "M_orcast_status": np.full(rows, "ok"),
    }
    data["y"][[3, 4]] = np.nan
    data["M-lo-90"][7] = np.nan
    data["y"][9] = 50.0
    order = rng.permutation(rows)
    return {name: values[order] for name, values in data.items()}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda d: pd.DataFrame(d).set_index(["unique_id", "ds"])])
def test_check_reads_both_sides(make: Any) -> None:
    data = nixtla()
    frame = make(data | {"cap": np.where(data["unique_id"] == "a", 10.0, 20.0)})
    (evaluation,) = check(frame, low=-10, high="cap")
    assert (evaluation.model, evaluation.kind, evaluation.names) == ("M", "quantiles", ("a", "b"))
    assert evaluation.levels.tolist() == [0.05, 0.5, 0.95]
    assert (evaluation.rows, evaluation.pending, evaluation.missing, evaluation.outside) == (56, 2, 1, 1)
    assert evaluation.time is not None
    assert evaluation.time.dtype.kind == "M"
    assert not evaluation.overlap
    for i, name in enumerate("ab"):
        mine = evaluation.series == i
        whole = (data["unique_id"] == name) & np.isfinite(data["y"]) & (data["y"] < 20) & np.isfinite(data["M-lo-90"])
        order = np.argsort(data["ds"][whole])
        np.testing.assert_array_equal(evaluation.y[mine], data["y"][whole][order])
        np.testing.assert_array_equal(evaluation.time[mine], data["ds"][whole][order].astype("datetime64[ns]"))
        assert evaluation.promised is not None
        np.testing.assert_array_equal(evaluation.promised[mine], data["M_orcast_promised"][whole][order])
        assert set(evaluation.low[mine]) == {-10.0}
        assert set(evaluation.high[mine]) == {10.0 if name == "a" else 20.0}
    assert evaluation.after is not None
    assert evaluation.before[0].tolist() == [-1.0, 0.0, 1.0]
    assert evaluation.after[0].tolist() == [-1.645, 0.1, 1.645]
    assert evaluation.holds is not None
    assert evaluation.holds.tolist() == [1.0] * 56
    base_only = make({name: values for name, values in data.items() if "orcast" not in name})
    (evaluation,) = check(base_only)
    assert evaluation.after is None
    assert evaluation.promised is None
    assert (evaluation.rows, evaluation.outside) == (57, 0)
    told = make({**data, "M_orcast_status": np.where(data["y"] > 20, "outside", "ok")})
    (evaluation,) = check(told)
    assert (evaluation.rows, evaluation.outside) == (56, 1)


def test_check_reads_normal_distributions() -> None:
    frame = pl.DataFrame({"y": [1.0, 2.0], "mean": [0.0, 1.0], "sd": [1.0, -2.0]})
    (evaluation,) = check(frame)
    np.testing.assert_allclose(evaluation.before, norm.ppf(metrics.LEVELS)[None])
    assert evaluation.missing == 1  # no spread is negative
    both = frame.with_columns(orcast_mean=pl.lit(0.5), orcast_sd=pl.lit(2.0))
    (evaluation,) = check(both)
    np.testing.assert_allclose(evaluation.after, norm.ppf(metrics.LEVELS, 0.5, 2.0)[None])
    levels = both.with_columns(pl.lit(0.25).alias("orcast_q0.1"), pl.lit(3.0).alias("orcast_q0.9"))
    (evaluation,) = check(levels)
    assert evaluation.levels.tolist() == [0.1, 0.9]
    assert evaluation.after is not None
    assert evaluation.after.tolist() == [[0.25, 3.0]]
    np.testing.assert_allclose(evaluation.before, norm.ppf([[0.1, 0.9]]))


def test_check_reads_members() -> None:
    rng = np.random.default_rng(8)
    members = rng.normal(size=(40, 4))
    members[5, 2] = np.nan
    frame = pl.DataFrame({"y": rng.normal(size=40), **{f"member_{k}": members[:, k] for k in range(4)}})
    (evaluation,) = check(frame)
    assert evaluation.levels.tolist() == [0.125, 0.375, 0.625, 0.875]
    assert evaluation.rows == 40
    np.testing.assert_allclose(evaluation.before[0], np.sort(members[0]))
    three = np.sort(members[5, [0, 1, 3]])
    np.testing.assert_allclose(evaluation.before[5], np.interp(evaluation.levels, [1 / 6, 1 / 2, 5 / 6], three))
    many = pl.DataFrame({"y": [0.0], **{f"member_{k}": [float(k)] for k in range(500)}})
    (evaluation,) = check(many)
    assert evaluation.levels.size == 99
    np.testing.assert_allclose(evaluation.before[0], evaluation.levels * 500 - 0.5)


def test_check_reads_points() -> None:
    """A point forecast has the spread of its own past errors at that horizon that were known by the cutoff."""
    rng = np.random.default_rng(9)
    rows = [(s, c, c + h) for s in ("a", "b") for c in range(12) for h in (1, 2, 3)]
    frame = pl.DataFrame(
        {
            "unique_id": [s for s, _, _ in rows],
            "cutoff": [c for _, c, _ in rows],
            "ds": [t for _, _, t in rows],
            "y": rng.normal(size=len(rows)),
            "Naive": rng.normal(size=len(rows)),
        }
    ).sample(fraction=1.0, shuffle=True, seed=1)
    (evaluation,) = check(frame)
    assert evaluation.overlap
    plain = frame.to_dicts()
    expected = {}
    for row in plain:
        past = [
            abs(other["y"] - other["Naive"])
            for other in plain
            if other["unique_id"] == row["unique_id"]
            and other["ds"] <= row["cutoff"]
            and other["ds"] - other["cutoff"] == row["ds"] - row["cutoff"]
        ]
        if past:
            key = (row["unique_id"], row["ds"], row["y"])
            expected[key] = norm.ppf(metrics.LEVELS, row["Naive"], np.sqrt(np.pi / 2.0) * np.mean(past))
    assert evaluation.rows == len(expected)
    assert evaluation.missing == 0
    assert evaluation.time is not None
    for series, when, y, q in zip(evaluation.series, evaluation.time, evaluation.y, evaluation.before, strict=True):
        np.testing.assert_allclose(q, expected[evaluation.names[series], when, y])
    simple = frame.filter(pl.col("ds") == pl.col("cutoff") + 1).drop("cutoff")
    gaps = simple.with_columns(pl.when(pl.col("ds") == 5).then(None).otherwise(pl.col("Naive")).alias("Naive"))
    (evaluation,) = check(gaps)
    # the first of each series has no past
    assert (evaluation.missing, evaluation.rows, evaluation.overlap) == (2, simple.height - 4, 0)


def test_check_reads_probabilities() -> None:
    data = {"y": [True, False, None, True], "p": [0.7, 0.2, 0.5, 1.4], "orcast_p": [0.8, 0.1, 0.5, 0.4]}
    for frame in (pl.DataFrame(data), pd.DataFrame(data)):
        (evaluation,) = check(frame)
        assert (evaluation.kind, evaluation.labels, evaluation.y.tolist()) == ("binary", ("1",), [1.0, 0.0])
        assert evaluation.before.tolist() == [[0.7], [0.2]]
        assert evaluation.after is not None
        assert evaluation.after.tolist() == [[0.8], [0.1]]
        assert (evaluation.pending, evaluation.missing) == (1, 1)
    match = {"y": ["b", None, "a"], "p_a": [0.3, 0.5, 0.9], "p_b": [0.7, 0.5, 0.1]}
    for frame in (pl.DataFrame(match), pd.DataFrame(match)):
        (evaluation,) = check(frame)
        assert (evaluation.kind, evaluation.labels, evaluation.y.tolist()) == ("labels", ("a", "b"), [1.0, 0.0])
        assert evaluation.after is None
        assert evaluation.pending == 1
