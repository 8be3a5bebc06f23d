"""The games of a series in a stream, without Spark: attacks on order, repeats, cuts and nonsense."""

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orcast as oc
from helpers import SENTENCE
from panels import LABELS, _answers, _columns, _read, _space, inputs
from sparks import Acted

pytest.importorskip("pyspark")

from orcast.frame.experts import ForecastShape
from orcast.frame.names import find
from orcast.frame.runner import CompiledRun
from orcast.frame.statuses import STATUS_TEXTS
from orcast.integrations.spark.games import ANSWERS_AT, Event, Games, RoundColumn, SeriesOptions, mark_of
from orcast.residuals import Residuals

FORMS = ("quantiles", "normal", "members", "binary", "labels")


def rules(
    form: str, *, max_pending: int = 1000, remember: int = 1000, payoff: Any = None, models: int = 1
) -> SeriesOptions:
    names = [name for m in range(models) for name in inputs(form, f"M{m}")]
    outcomes = {"binary": "0/1", "labels": "labels"}.get(form, "numbers")
    numeric = [*names, *([] if form == "labels" else ["y"])]
    layout = find(["unique_id", "ds", "y", *names], numeric=numeric, outcomes=outcomes)
    shapes = tuple(ForecastShape.of(each, each.outputs()) for each in layout.forms)
    return SeriesOptions(
        layout.forms, shapes, payoff, False, False, max_pending, remember, mark_of(form, max_pending, repr(payoff))
    )


def bounds(form: str) -> tuple[float, float]:
    return (-np.inf, np.inf) if form in ("binary", "labels") else (0.0, 100.0)


def random_events(form: str, seed: int, steps: int = 12, lag: int = 3, models: int = 1) -> list[Event]:
    """Forecasts and their outcomes some time later, some of which never come, in the order of time."""
    rng = np.random.default_rng(seed)
    low, high = bounds(form)
    events = []
    for t in range(steps):
        row = [np.array(list(_columns(form, rng, f"M{m}").values())) for m in range(models)]
        events.append(Event(f"r{t}", t, row, np.nan, low, high, order=f"r{t}"))
        if rng.random() < 0.85:
            y = rng.uniform(0, 100)
            y = float(y < 40) if form == "binary" else float(int(y * 3 / 100)) if form == "labels" else y
            events.append(Event(f"r{t}", t + int(rng.integers(0, lag + 1)), None, y, order=f"r{t}"))
    return sorted(events, key=Event.rank)


def copy(event: Event) -> Event:
    row = None if event.given is None else [each.copy() for each in event.given]
    return Event(event.id, event.time, row, event.y, event.low, event.high, event.features, event.order)


def reported(answer: Any) -> tuple[Any, ...]:
    """What is reported of an event, with nan as None."""
    row = None if answer.round is None else answer.round.models[0]
    numbers = None
    if row is not None:
        after = row[RoundColumn.MISCALIBRATION] if answer.settled else np.nan
        numbers = [row[RoundColumn.HOLDS], *row[ANSWERS_AT:], after]
        numbers = [None if np.isnan(each) else float(each) for each in numbers]
    kind = "outcome" if answer.event.given is None else "forecast"
    return answer.event.id, kind, [STATUS_TEXTS[each] for each in answer.status], numbers


def played(some: SeriesOptions, batches: list[list[Event]]) -> tuple[list[Any], bytes]:
    """All answers in order, from games that go through bytes between batches, and what is left."""
    state, answers = None, []
    for batch in batches:
        games = Games(some, state)
        answers += [reported(answer) for answer in games.play([copy(event) for event in batch])]
        state = games.state()
    assert state is not None
    return answers, state


@pytest.mark.parametrize("form", FORMS)
@given(seed=st.integers(0, 10**6), lag=st.integers(0, 6), most=st.sampled_from([1000, 3]))
@settings(max_examples=8)
def test_answers_are_those_of_a_recalibrator(form: str, seed: int, lag: int, most: int) -> None:
    """The same predict(id) and update(id), bit for bit: forecasts, certificates, miscalibration."""
    events = random_events(form, seed, lag=lag)
    got, _ = played(rules(form, max_pending=most), [[event] for event in events])
    low, high = (None, None) if form in ("binary", "labels") else (0.0, 100.0)
    recal = oc.Recalibrator(_space(form, low, high), max_pending=most)
    for event, (id, kind, status, numbers) in zip(events, got, strict=True):
        assert id == event.id
        if event.given is not None:
            row = dict(zip(inputs(form, "M0"), event.given[0].tolist(), strict=True))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                p = recal.predict(_read(form, "M0", row, Residuals(), low, high), id=event.id)
            assert status == ["pending"]
            assert numbers == [float(p.certificate.holds), *_answers(form, "M0", row, p), None]
        elif event.id in recal.pending:
            recal.update(LABELS[int(event.y)] if form == "labels" else event.y, id=event.id)
            assert (kind, status) == ("outcome", ["ok"])
            assert numbers[-1] == recal.guarantee.miscalibration
        else:
            assert status == ["lost"]


@pytest.mark.parametrize("form", FORMS)
@given(seed=st.integers(0, 10**6), data=st.data())
@settings(max_examples=8)
def test_cuts_and_order_within_a_batch_change_nothing(form: str, seed: int, data: st.DataObject) -> None:
    events = random_events(form, seed, models=2)
    some = rules(form, remember=3, max_pending=4, models=2)
    want, state = played(some, [events])
    cuts = sorted(data.draw(st.sets(st.integers(1, len(events) - 1), max_size=6)))
    rng = np.random.default_rng(seed)
    batches = [events[a:b] for a, b in zip([0, *cuts], [*cuts, len(events)], strict=True)]
    shuffled = [[batch[i] for i in rng.permutation(len(batch))] for batch in batches]
    assert played(some, shuffled) == (want, state)


@given(seed=st.integers(0, 10**6), remember=st.sampled_from([1, 2, 5, 1000]))
@settings(max_examples=30)
def test_nothing_is_counted_twice(seed: int, remember: int) -> None:
    """Events that come again, at once or much later, change no later answer, whatever is remembered."""
    rng = np.random.default_rng(seed)
    events = random_events("quantiles", seed)
    some = rules("quantiles", remember=remember)
    want, state = played(some, [[event] for event in events])
    again: list[list[Event]] = []
    first: list[int] = []
    for i, event in enumerate(events):
        first.append(len(again))
        again.append([event])
        again += [[events[j]] for j in rng.integers(0, i + 1, int(rng.integers(0, 3)))]
    got, after = played(some, again)
    assert [got[i] for i in first] == want
    assert after == state
    answers = {id: numbers for id, kind, _, numbers in want if kind == "forecast"}
    for i, (id, kind, status, numbers) in enumerate(got):
        if i in first:
            continue
        if kind == "forecast":
            assert status in (["seen"], ["late"])
            assert status == ["late"] or numbers[:-1] == answers[id][:-1]
            assert remember < 1000 or status == ["seen"]
        else:
            assert status in (["seen"], ["unknown"])
            assert remember < 1000 or status == ["seen"]


def test_a_corrected_outcome_is_reported_and_not_used() -> None:
    events = random_events("normal", 1, steps=4, lag=0)
    some = rules("normal")
    _, state = played(some, [events])
    games = Games(some, state)
    (answer,) = games.play([Event("r0", 9, None, 77.0, order="r0")])
    assert reported(answer)[2] == ["corrected"]
    assert games.state() == state


def test_nonsense_is_refused_and_changes_nothing() -> None:
    some = rules("normal")
    events = random_events("normal", 1)
    want, state = played(some, [events])
    bad = Event("bad", 3, [np.array([50.0, -1.0])], np.nan, 0.0, 100.0, order="bad")
    games = Games(some)
    answers = games.play([copy(event) for event in [*events[:4], bad, *events[4:]]])
    assert games.state() == state
    assert [reported(each) for each in answers if each.event.id != "bad"] == want
    (answer,) = [each for each in answers if each.event.id == "bad"]
    assert reported(answer)[2] == ["refused"]
    assert answer.reason == "expected a standard deviation of at least 0 in 'M0_std', got -1"


def test_features_that_no_context_takes_are_refused() -> None:
    payoff = oc.QuantileCalibration(context=oc.by("day", values="MT"))
    some = rules("normal", payoff=payoff)
    events = random_events("normal", 2, lag=1)
    for i, event in enumerate(events):
        event.features = {"day": "MT"[i % 2]}
    want, state = played(some, [events])
    strange = copy(events[0])
    strange.id = strange.order = "strange"
    strange.features = {"day": "X"}
    games = Games(some)
    answers = games.play([strange, *map(copy, events)])
    assert [reported(each) for each in answers if each.event is not strange] == want
    assert games.state() == state
    assert reported(answers[-1])[2] == ["refused"]
    assert answers[-1].reason is not None
    assert "day" in answers[-1].reason


def test_outside_outcomes_are_dropped() -> None:
    some = rules("quantiles")
    first = random_events("quantiles", 3, steps=1)[0]
    games = Games(some)
    a, b, c = games.play([first, Event("r0", 1, None, 101.0, order="r0"), Event("r0", 2, None, 50.0, order="r0")])
    assert [reported(each)[2] for each in (a, b, c)] == [["pending"], ["outside"], ["corrected"]]
    assert not games.pending[0]


def test_a_state_of_other_options_is_refused() -> None:
    _, state = played(rules("normal"), [random_events("normal", 1)])
    with pytest.raises(ValueError, match="expected the columns and options that the stream began with, got others"):
        Games(rules("normal", max_pending=7), state)
    with pytest.raises(ValueError, match="expected a state of a stream"):
        Games(rules("normal"), b"something else")


def test_bounds_stay_those_that_a_series_began_with() -> None:
    some = rules("normal")
    first, second = (event for event in random_events("normal", 1, steps=2) if event.given is not None)
    _, state = played(some, [[first]])
    games = Games(some, state)
    second.high = 200.0
    (answer,) = games.play([second])
    assert answer.reason == "expected the bounds that the series began with, 0 to 100, got 0 to 200"
    assert games.state() == state


def test_the_state_has_a_bounded_size() -> None:
    some = rules("quantiles", remember=5, max_pending=4)
    events = random_events("quantiles", 5, steps=200)
    sizes = []
    games = Games(some)
    for event in events:
        games.play([event])
        sizes.append(len(games.state()))
    assert max(sizes[100:]) <= 1.02 * max(sizes[:100])
    assert len(games.rounds) <= 9


# --- what one event may not do


@pytest.mark.parametrize("harm", ["play", "write", "read"])
def test_whatever_an_event_raises_it_alone_is_refused(harm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that fails, a state that cannot be written, one that could not be read: the series is as it was."""
    some, events = rules("normal"), random_events("normal", 4)
    want, state = played(some, [events])
    poison = Event("poison", 3, [np.array([50.0, 4.5])], np.nan, 0.0, 100.0, order="poison")
    play, state_of, write = CompiledRun.play, CompiledRun.state, Games._written

    def fail(run: CompiledRun, events: Any) -> None:
        play(run, events)
        if harm == "play" and poisoned(run):
            raise np.linalg.LinAlgError("no convergence")

    def spoil(run: CompiledRun) -> Any:
        found = state_of(run)
        if harm == "read" and poisoned(run):
            found.memory[-1] = np.nan
        return found

    def refuse(games: Games) -> bytes:
        if harm == "write" and "poison" in games.rounds:
            raise OverflowError("too large")
        return write(games)

    def poisoned(run: CompiledRun) -> bool:
        return any(abs(row.mean() - 50.0) < 1e-6 for row in run.inputs.experts)

    monkeypatch.setattr(CompiledRun, "play", fail)
    monkeypatch.setattr(CompiledRun, "state", spoil)
    monkeypatch.setattr(Games, "_written", refuse)
    games = Games(some)
    answers = games.play([copy(event) for event in [*events[:4], poison, *events[4:]]])
    assert [reported(each) for each in answers if each.event.id != "poison"] == want
    (answer,) = [each for each in answers if each.event.id == "poison"]
    assert reported(answer)[2] == ["refused"]
    assert answer.reason is not None
    assert answer.reason.startswith("expected an event")
    assert games.state() == state


NORMAL = "mean double, sd double, y double"
U = "unique_id string, ds bigint"


def test_an_id_is_not_a_series() -> None:
    rng = np.random.default_rng(0)
    rows = [(str(t), f"f{t}", 50.0, 5.0, float(rng.uniform(60, 90))) for t in range(8)]
    frame = pd.DataFrame({"ds": range(8), "mean": 50.0, "sd": 5.0, "y": [row[-1] for row in rows]})
    want = oc.recalibrate(frame, low=0, high=100)["orcast_mean"].tolist()
    for id in (None, "id"):
        stream = Acted(f"ds bigint, id string, {NORMAL}", low=0, high=100, id=id)
        assert [row["orcast_mean"] for row in stream.batch(*rows)] == want
    assert Acted(f"ds bigint, id string, {NORMAL}", series="id").task.plan.layout.series == ("id",)
    # without a convention both are names for series
    both = Acted("unique_id string, ds bigint, id string, mean double, sd double, actual double").task
    assert (both.plan.layout.series, both.id) == (("unique_id",), "id")


@pytest.mark.parametrize("kind", ["date", "string", "timestamp_ntz", "timestamp", "bigint"])
def test_a_stream_presumes_the_seasons_that_a_table_does(kind: str) -> None:
    rng, days = np.random.default_rng(0), pd.date_range("2026-01-01", periods=24)
    y = 50.0 + 20.0 * (np.arange(24) % 7 == 3) + rng.normal(0.0, 2.0, 24)
    frame = pd.DataFrame({"ds": range(24) if kind == "bigint" else days, "mean": 50.0, "sd": 8.0, "y": y})
    want = oc.recalibrate(frame, low=0, high=100)["orcast_mean"].tolist()
    told = {
        "bigint": list(map(str, range(24))),
        "date": [str(day.date()) for day in days],
        "timestamp": [str(day.value // 1000) for day in days],
    }.get(kind, list(map(str, days)))
    rows = [(ds, 50.0, 8.0, float(value)) for ds, value in zip(told, y, strict=True)]
    for cuts in ([], [1], [2, 9], [1, 2, 3]):
        stream = Acted(f"ds {kind}, {NORMAL}", low=0, high=100)
        found = []
        for first, last in zip([0, *cuts], [*cuts, 24], strict=True):
            found += stream.batch(*rows[first:last])
        assert [row["orcast_mean"] for row in found] == want
    assert (want == oc.recalibrate(frame.assign(ds=range(24)), low=0, high=100)["orcast_mean"].tolist()) == (
        kind == "bigint"
    )


def test_horizons_are_refused_unless_they_have_games() -> None:
    columns = f"{U}, horizon bigint, {NORMAL}"
    with pytest.raises(ValueError, match=r"expected a game for each horizon by series=\['unique_id', 'horizon'\]"):
        Acted(columns)
    rows = [("a", "1", str(h), 50.0 + h, 5.0, None) for h in (1, 2)]
    reported = Acted(columns, series=["unique_id", "horizon"]).batch(*rows)
    assert [(row["orcast_mean"] > 51.5, row["orcast_status"]) for row in reported] == [
        (False, "pending"),
        (True, "pending"),
    ]


def mark(columns: str = f"{U}, id bigint, {NORMAL}", **options: Any) -> bytes:
    return Acted(columns, **options).task.options.mark


def test_a_mark_tells_the_names_of_ids_series_and_times() -> None:
    columns = f"{U}, id bigint, place string, at bigint, {NORMAL}"
    marks = [mark(columns, **some) for some in ({}, {"id": "ds"}, {"series": "place"}, {"time": "at"}, {"id": "at"})]
    assert len(set(marks)) == len(marks)
    assert mark(columns, id="id") == marks[0]


def test_bounds_of_a_stream_are_checked_at_once() -> None:
    for low, high in (
        ({"a": "x"}, None),
        ({"a": 1e200}, None),
        ({"a": math.nan}, None),
        ({"a": 5.0}, {"a": 1.0}),
        ({"a": 5.0}, 5),
        ({"a": 0.0, "b": 0.0}, {"b": 1e-200}),
        ("unique_id", None),
    ):
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            Acted(f"{U}, {NORMAL}", low=low, high=high)
    stream = Acted(f"{U}, {NORMAL}", low={"a": 0.0, "b": None}, high={"a": 100})
    reported = stream.batch(("a", "1", 50.0, 5.0, None), ("b", "1", 50.0, 5.0, None))
    assert [row["orcast_status"] for row in reported] == ["pending", "refused"]
