"""References at the same information: slow twins, later outcomes, names, frames and pages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from scipy.special import ndtri

from orcast.evaluate import Evaluation, best_reference, check, loss, metrics, verdict
from orcast.evaluate.information import FEWEST, WINDOW, Information
from orcast.evaluate.references import STEPS, ReferenceScore
from orcast.evaluate.references import _losses as losses_of
from pages import headline

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
Row = dict[str, Any]


# --- against slow twins


@st.composite
def panels(draw: st.DrawFn, outcomes: tuple[float, ...] = ()) -> list[Row]:
    """Rows of two series at several horizons, with gaps; outcomes are known late, out of order or never."""
    rows = []
    for series in range(2):
        times = sorted(draw(st.sets(st.integers(0, 60), min_size=2, max_size=40)))
        late = draw(st.sampled_from([(0,), (0, 0, 0, 1, 5), (3,)]))
        steps = sorted(draw(st.sets(st.integers(1, 3), min_size=1, max_size=2)))
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        walk, season = rng.normal(size=61).cumsum(), rng.normal(size=7)
        for t in times:
            y = float(walk[t] + draw(st.sampled_from([0.0, 3.0])) * season[t % 7])
            y = float(rng.choice(outcomes)) if outcomes else y
            row = {"series": series, "time": t, "known": t + int(rng.choice(late))}
            row["y"] = np.nan if rng.random() < 0.1 else y
            rows += [row | {"issued": t - step, "horizon": step} for step in reversed(steps)]
    return rows


def evidence_of(rows: list[Row], kind: str) -> Evaluation:
    """Evaluation of the rows with an outcome."""
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    times = (columns[name] for name in ("series", "time", "y", "issued", "known"))
    information = Information.of(*times, columns["horizon"].astype(float))
    keep = np.isfinite(columns["y"])
    given = {"levels": LEVELS} if kind == "quantiles" else {"labels": tuple("abc")} if kind == "labels" else {}
    shape = {"quantiles": (keep.sum(), 5), "labels": (keep.sum(), 3), "binary": (keep.sum(),)}[kind]
    return Evaluation.of(np.full(shape, 1 / 3), columns["y"][keep], known=(information, keep), **given)  # type: ignore[arg-type]


def outcomes_known(rows: list[Row], row: Row) -> dict[int, float]:
    """Outcomes of the series by time that were known when a row was issued, in the order of publication."""
    mine = [r for r in rows if r["series"] == row["series"] and r["known"] <= row["issued"] and np.isfinite(r["y"])]
    return {r["time"]: r["y"] for r in sorted(mine, key=lambda r: r["known"])}


def streams(rows: list[Row]) -> list[list[int]]:
    """Rows of the same series and horizon whose outcome was known when each row was issued, as they were published."""
    order = sorted((k for k, row in enumerate(rows) if np.isfinite(row["y"])), key=lambda k: rows[k]["known"])
    alike = {(row["series"], row["horizon"]): [] for row in rows}
    for k in order:
        alike[rows[k]["series"], rows[k]["horizon"]].append(k)
    return [[k for k in alike[row["series"], row["horizon"]] if rows[k]["known"] <= row["issued"]] for row in rows]


def lag_of(rows: list[Row]) -> float:
    return float(np.median(np.diff(sorted({row["time"] for row in rows}))))


def quantiles_of(values: list[float], places: list[int]) -> Any:
    """Quantiles of the last 256 known values, renewed whenever an eighth is added; nan of fewer than 5."""
    known = [values[k] for k in places if np.isfinite(values[k])]
    known = known[: len(known) - len(known) % 2 ** max(len(known).bit_length() - 4, 0)]
    nothing = np.full(LEVELS.size, np.nan)
    return np.quantile(known[-WINDOW:], LEVELS, method="hazen") if len(known) >= FEWEST else nothing


@settings(max_examples=100)
@given(panels())
def test_quantile_references_against_a_slow_twin(rows: list[Row]) -> None:
    centres, step = [[] for _ in range(1 + len(STEPS))], lag_of(rows)
    for row in rows:
        known = outcomes_known(rows, row)
        centres[0].append(known[max(known)] if known else np.nan)
        for k, many in enumerate(STEPS):
            same = [t for t in known if (row["time"] - t) % (many * step) == 0]
            centres[k + 1].append(known[max(same)] if same else np.nan)
    losses: list[Any] = []
    for centre in [*centres, [0.0] * len(rows)]:
        errors = [row["y"] - c for row, c in zip(rows, centre, strict=True)]
        q = [c + quantiles_of(errors, places) for c, places in zip(centre, streams(rows), strict=True)]
        gap = np.array([row["y"] for row in rows])[:, None] - q
        own = np.maximum(LEVELS * gap, (LEVELS - 1) * gap).mean(axis=1)
        losses.append(np.where(np.isnan(own) | np.isnan(losses[0]), losses[0], own) if losses else own)
    compare(best_reference(evidence_of(rows, "quantiles")), rows, losses)


@given(st.sampled_from(["binary", "labels"]).flatmap(lambda kind: st.tuples(st.just(kind), panels((0.0, 1.0)))))
def test_frequencies_against_a_slow_twin(case: tuple[str, list[Row]]) -> None:
    kind, rows = case
    found = best_reference(evidence_of(rows, kind))
    came = np.eye(3) if kind == "labels" else np.array([[0.0], [1.0]])
    losses: list[list[float]] = [[] for _ in range(1 + len(STEPS))]
    for row in rows:
        known = outcomes_known(rows, row)
        whole = (sum(came[int(y)] for y in known.values()) + (0.5 if kind == "binary" else 1 / 3)) / (len(known) + 1)
        groups = [[known[t] for t in known if (row["time"] - t) % (many * lag_of(rows)) == 0] for many in STEPS]
        shrunk = [(sum(came[int(y)] for y in group) + whole) / (len(group) + 1) for group in groups]
        for each, p in zip(losses, (whole, *shrunk), strict=True):
            each.append(((p - came[int(row["y"])]) ** 2).sum() if np.isfinite(row["y"]) else np.nan)
    compare(found, rows, losses)


def compare(found: ReferenceScore | None, rows: list[Row], losses: list[Any]) -> None:
    """The best reference has the losses of the twin with the least."""
    there = np.isfinite([row["y"] for row in rows])
    if found is None:
        assert not np.isfinite(losses[0]).any()
        return
    best = min((np.array(each)[there] for each in losses), key=np.nansum)
    assert np.nansum(found.losses) == pytest.approx(np.nansum(best))
    assert any(np.allclose(found.losses, np.array(each)[there], equal_nan=True) for each in losses)


def best_in(evaluation: Evaluation) -> ReferenceScore:
    found = best_reference(evaluation)
    assert found is not None
    return found


# --- no later outcome counts


@pytest.mark.parametrize("kind", ["quantiles", "binary", "labels"])
def test_outcomes_after_the_issue_time_change_nothing(kind: str) -> None:
    """A row's references are the same to the last bit, whatever comes after it was issued."""
    rng = np.random.default_rng(1)
    n = 240
    hours = np.datetime64("2024-01-01T00") + np.arange(n)
    daily = np.sin(np.arange(n) * np.pi / 12)
    y = (
        np.cumsum(rng.normal(size=n)) + 5 * daily
        if kind == "quantiles"
        else np.float64(rng.random(n) < 0.5 + daily / 3)
    )
    issued, known = (np.arange(n) // 12) * 12 - 3, np.arange(n) + rng.integers(0, 4, n)
    given: Any = {"quantiles": {"levels": LEVELS}, "binary": {}, "labels": {"labels": tuple("ab")}}[kind]
    shape = (n, 5) if kind == "quantiles" else (n, 2) if kind == "labels" else n

    def losses(outcomes: Any) -> Any:
        information = Information.of(np.zeros(n, np.intp), np.arange(n), outcomes, issued, known, None, hours)
        evaluation = Evaluation.of(np.full(shape, 0.5), outcomes, known=(information, slice(None)), **given)
        return np.array([each for _, each in losses_of(evaluation, information, slice(None))]).T

    before = losses(y)
    for i in range(5, n, 9):
        changed = 1e6 * rng.normal(size=n) if kind == "quantiles" else 1.0 - y
        later = (known > issued[i]) & (np.arange(n) != i)
        after = losses(np.where(later, changed, y))
        np.testing.assert_array_equal(after[i], before[i])


# --- names, rows, verdict


def test_references_without_issue_times() -> None:
    y = np.cumsum(np.random.default_rng(0).normal(size=200))
    frame = pl.DataFrame({"y": y, **{f"q{a:g}": y + ndtri(a) for a in LEVELS}})
    (evaluation,) = check(frame)
    assert not evaluation.timed
    score = best_in(evaluation)
    assert (score.name, np.isfinite(score.losses).sum()) == ("the last known outcome", 194)
    expected = metrics.pinball(y[5] + quantiles_of(np.diff(y).tolist(), list(range(5))), y[6], LEVELS)
    assert best_in(evaluation).losses[6] == pytest.approx(float(expected))
    assert score.changes["before"].relative == pytest.approx(loss(evaluation)[6:].mean() / score.loss - 1.0)
    said = f"the last known outcome, pinball loss {score.loss:.4g} (in the 194 rows that have one), if each outcome is"
    assert said in " ".join(verdict(evaluation))
    arrays = Evaluation.of(evaluation.before, y, levels=LEVELS)
    np.testing.assert_array_equal(best_in(arrays).losses, best_in(evaluation).losses)
    assert best_reference(replace(arrays, horizon=np.arange(200.0))) is None


def hourly(issued_every: Any, y: Any = None) -> Evaluation:
    """Hourly outcomes with a daily and a weekly pattern."""
    hours = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[h]").astype("datetime64[us]")
    index = np.arange(hours.size)
    pattern = 10 * np.sin(2 * np.pi * index / 24) * (1 + (index // 24 % 7 > 4))
    y = pattern + 0.1 * np.random.default_rng(2).normal(size=hours.size) if y is None else y(pattern)
    frame = pl.DataFrame({"ds": hours, "y": y, "q0.05": y * 0 - 20, "q0.5": y * 0, "q0.95": y * 0 + 20})
    return check(frame, issued_every=issued_every)[0]


def test_best_season_leads() -> None:
    evaluation = hourly("daily")
    assert best_in(evaluation).name == "the last outcome in a season of 168 steps"
    assert headline(evaluation).startswith("Do not use these forecasts")


def test_without_persistence_recent_outcomes_lead() -> None:
    y = np.random.default_rng(3).exponential(size=400)
    evaluation = Evaluation.of(np.tile(np.quantile(y, LEVELS), (400, 1)), y, levels=LEVELS, timed=True)
    assert best_in(evaluation).name == "the last 256 outcomes"
    assert -0.05 < best_in(evaluation).changes["before"].relative < 0.01


def test_probabilities_are_compared_with_frequencies() -> None:
    """An event by the hour of the day: the frequency of the same hour is better than a constant probability."""
    rng = np.random.default_rng(4)
    hours = np.arange("2024-01-01", "2024-04-01", dtype="datetime64[h]")
    p = 0.5 + 0.45 * np.sin(np.arange(hours.size) * np.pi / 12)
    y = (rng.random(hours.size) < p).astype(float)
    for labels, before in (((), np.full(y.size, 0.5)), (("no", "yes"), np.full((y.size, 2), 0.5))):
        evaluation = Evaluation.of(before, y, labels=labels, time=hours, timed=True)
        best = best_in(evaluation)
        assert "the frequency in a season of 24 steps" in best.name
        assert best.loss < 0.8 * loss(evaluation).mean()
        assert headline(evaluation).startswith(
            f"Do not use these forecasts: the best reference, {best.name}, has a Brier"
        )
    right = Evaluation.of(p, y, time=hours, timed=True)
    assert "Do not use" not in headline(right)
    assert f"{best_in(right).loss:.4g}" in " ".join(verdict(right))
