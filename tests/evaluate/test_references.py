"""References at the same information: slow twins, later outcomes, names, frames and pages."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from scipy.special import ndtri

from orcast.constants import PER_ABSOLUTE
from orcast.evaluate import Evaluation, best_reference, check, headline, loss, metrics, verdict
from orcast.evaluate.information import FEWEST, Information
from orcast.evaluate.references import NOISE, PRIOR, STEPS, ReferenceScore, seasons

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


def renewed(values: list[float]) -> list[float]:
    """Values of the window in use: it is renewed whenever an eighth is added."""
    return values[: len(values) - len(values) % 2 ** max(len(values).bit_length() - 4, 0)]


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


def window(values: list[float], places: list[int]) -> Any:
    return np.array(renewed([values[k] for k in places if np.isfinite(values[k])]))


def quantiles_of(e: Any) -> Any:
    spread = PER_ABSOLUTE * np.abs(e - e.mean()).mean()
    noise = NOISE * spread / sqrt(e.size)
    normal = spread * ndtri(LEVELS) + (e.mean() - noise**2 / e.mean() if abs(e.mean()) > noise else 0.0)
    return (e.size * np.quantile(e, LEVELS, method="hazen") + PRIOR * normal) / (e.size + PRIOR)


def lag_of(rows: list[Row]) -> float:
    return float(np.median(np.diff(sorted({row["time"] for row in rows}))))


def best_of(rows: list[Row], losses: list[list[float]]) -> list[float]:
    """Loss of the candidate that led, by more than one standard error, when each row was issued."""
    best = []
    gaps = [[a - b for a, b in zip(each, losses[0], strict=True)] for each in losses]
    for i, places in enumerate(streams(rows)):
        past = [window(each, places) for each in gaps]
        scores = [each.sum() + sqrt((each**2).sum()) if each.size >= FEWEST else 0.0 for each in past]
        best.append(losses[int(np.argmin(scores))][i])
    return best


@settings(max_examples=100)
@given(panels())
def test_quantile_references_against_a_slow_twin(rows: list[Row]) -> None:
    found = best_reference(evidence_of(rows, "quantiles"))
    centres, step = [[] for _ in range(1 + len(STEPS))], lag_of(rows)
    for row in rows:
        known = outcomes_known(rows, row)
        centres[0].append(known[max(known)] if known else np.nan)
        for k, many in enumerate(STEPS):
            same = [t for t in known if (row["time"] - t) % (many * step) == 0]
            centres[k + 1].append(known[max(same)] if same else np.nan)
    losses: list[list[float]] = []
    for centre in centres:
        errors = [row["y"] - c for row, c in zip(rows, centre, strict=True)]
        losses.append([])
        for i, places in enumerate(streams(rows)):
            past = window(errors, places)
            if past.size >= FEWEST and np.isfinite(errors[i]):
                losses[-1].append(float(metrics.pinball(centre[i] + quantiles_of(past), rows[i]["y"], LEVELS)))
            else:
                losses[-1].append(losses[0][i] if losses[1:] else np.nan)
    compare(found, rows, losses)


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


def compare(found: ReferenceScore | None, rows: list[Row], losses: list[list[float]]) -> None:
    """The best reference has the losses of the twin."""
    there = np.isfinite([row["y"] for row in rows])
    if found is None:
        assert not np.isfinite(losses[0]).any()
        return
    np.testing.assert_allclose(found.losses, np.array(best_of(rows, losses))[there], atol=1e-9)


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
        return best_in(Evaluation.of(np.full(shape, 0.5), outcomes, known=(information, slice(None)), **given)).losses

    before = losses(y)
    for i in range(5, n, 9):
        changed = 1e6 * rng.normal(size=n) if kind == "quantiles" else 1.0 - y
        later = (known > issued[i]) & (np.arange(n) != i)
        after = losses(np.where(later, changed, y))
        assert after[i] == before[i] or (np.isnan(after[i]) and np.isnan(before[i]))


# --- names, rows, verdict


def test_references_without_issue_times() -> None:
    y = np.cumsum(np.random.default_rng(0).normal(size=200))
    frame = pl.DataFrame({"y": y, **{f"q{a:g}": y + ndtri(a) for a in LEVELS}})
    (evaluation,) = check(frame)
    assert not evaluation.timed
    score = best_in(evaluation)
    assert (score.name, np.isfinite(score.losses).sum()) == ("the last known outcome", 194)
    errors = np.diff(y)
    expected = metrics.pinball(y[5] + quantiles_of(errors[:5]), y[6], LEVELS)
    assert best_in(evaluation).losses[6] == pytest.approx(float(expected))
    assert score.gain("before") == pytest.approx(loss(evaluation)[6:].mean() / score.loss - 1.0)
    assert (
        f"the last known outcome {score.loss:.4g}, if each outcome is known before the next forecast; in the 194 rows"
        in " ".join(verdict(evaluation))
    )
    arrays = Evaluation.of(evaluation.before, y, levels=LEVELS)
    np.testing.assert_array_equal(best_in(arrays).losses, best_in(evaluation).losses)
    shuffled = np.random.default_rng(1).permutation(200)
    mixed = Evaluation.of(evaluation.before[shuffled], y[shuffled], levels=LEVELS, time=shuffled)
    np.testing.assert_array_equal(best_in(mixed).losses, best_in(evaluation).losses[shuffled])
    assert best_reference(replace(arrays, horizon=np.arange(200.0))) is None


def hourly(issued_every: Any, y: Any = None) -> Evaluation:
    """Hourly outcomes with a daily and a weekly pattern."""
    hours = np.arange("2024-01-01", "2024-03-01", dtype="datetime64[h]").astype("datetime64[us]")
    index = np.arange(hours.size)
    pattern = 10 * np.sin(2 * np.pi * index / 24) * (1 + (index // 24 % 7 > 4))
    y = pattern + 0.1 * np.random.default_rng(2).normal(size=hours.size) if y is None else y(pattern)
    frame = pl.DataFrame({"ds": hours, "y": y, "q0.05": y * 0 - 20, "q0.5": y * 0, "q0.95": y * 0 + 20})
    return check(frame, issued_every=issued_every)[0]


def test_best_season_leads_once_it_is_known() -> None:
    evaluation = hourly("daily")
    week = "the last outcome of the same hour of the week"
    assert best_in(evaluation).name.startswith(f"{week} (")
    assert best_in(evaluation).short_name == week
    text = headline(evaluation)
    assert text.startswith("Do not use these forecasts")


def test_names_follow_the_spacing() -> None:
    spacings = {"15m": "time", "D": "day", "W": "week", "M": "month"}
    for spacing, word in spacings.items():
        start = np.datetime64("2020-01-01", "ns")
        times = (
            np.arange("2020-01", "2024-01", dtype="datetime64[M]")
            if spacing == "M"
            else start + np.arange(200) * np.timedelta64({"15m": 15, "D": 1440, "W": 10080}[spacing], "m")
        )
        assert all(f"of the same {word} of the" in season for season in seasons(times))
    assert next(iter(seasons(np.arange(9.0)))) == "at multiples of 7 steps"
    assert seasons(np.array(["a", "b"])) == {}


def test_probabilities_are_compared_with_frequencies() -> None:
    """An event by the hour of the day: the frequency of the same hour is better than a constant probability."""
    rng = np.random.default_rng(4)
    hours = np.arange("2024-01-01", "2024-04-01", dtype="datetime64[h]")
    p = 0.5 + 0.45 * np.sin(np.arange(hours.size) * np.pi / 12)
    y = (rng.random(hours.size) < p).astype(float)
    for labels, before in (((), np.full(y.size, 0.5)), (("no", "yes"), np.full((y.size, 2), 0.5))):
        evaluation = Evaluation.of(before, y, labels=labels, time=hours, timed=True)
        best = best_in(evaluation)
        assert "the frequency of the same hour of the day" in best.name
        assert best.loss < 0.8 * loss(evaluation).mean()
        assert headline(evaluation).startswith(
            f"Do not use these forecasts: the best reference, {best.short_name}, has a Brier"
        )
    right = Evaluation.of(p, y, time=hours, timed=True)
    assert "Do not use" not in headline(right)
    assert f"{best_in(right).loss:.4g}" in " ".join(verdict(right))
