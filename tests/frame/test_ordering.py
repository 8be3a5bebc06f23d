"""The order of play against its definition, written event by event."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from orcast.frame.ordering import Before, Entries, Streams, fill_outcomes, order_of_play, seen_dates
from orcast.frame.times import RowTimes, farthest
from orcast.kernels.records import DROP, PREDICT, SETTLE
from orcast.rounds import learnt_lag

flags = st.booleans() | st.just(True)


def slow_order(
    entries: Entries, before: Before, at_once: bool, most: int
) -> tuple[list[list[int]], list[int], list[int]]:
    """Before each forecast come the outcomes known by then, in the order of knowledge, times and cutoffs; then gaps."""
    time, cutoff, due, there, good = entries
    events: list[list[int]] = []
    lost: list[int] = []
    given_up: list[int] = []
    old = len(before.issued)
    pending = list(range(old))
    issued = dict(enumerate(before.issued))
    over = set(range(1, before.rounds + 1)) - set(before.issued)
    count, lag = before.rounds, before.usual_lag

    def settle(now: float) -> None:
        nonlocal lag
        known = [i for i in pending if there[i] and (at_once or due[i] <= now)]
        for i in sorted(known, key=lambda i: (due[i], time[i], cutoff[i], i)):
            events.append([SETTLE if good[i] else DROP, i])
            pending.remove(i)
            over.add(issued[i])
            if good[i]:
                lag = learnt_lag(lag, float(count - issued[i]))

    for i in range(old, len(time)):
        settle(cutoff[i])
        for j in list(pending):
            if lag is not None and count - issued[j] > 2 * lag + 2 and any(k > issued[j] for k in over):
                given_up.append(j)
                pending.remove(j)
                events.append([DROP, j])
        if len(pending) == most:
            lost.append(pending.pop(0))
            events.append([DROP, lost[-1]])
        events.append([PREDICT, i])
        pending.append(i)
        count += 1
        issued[i] = count
    if at_once:
        settle(np.inf)
    return events, lost, given_up


@given(st.data(), st.booleans(), st.integers(0, 14))
def test_the_order_of_play_is_its_definition(data: st.DataObject, at_once: bool, count: int) -> None:
    """Forecasts come in the order of their cutoffs; a later one may be of an earlier time."""
    leads = st.integers(0, 5)
    rows = sorted(data.draw(st.lists(st.tuples(st.integers(0, 8), leads, leads), min_size=count, max_size=count)))
    cutoff = np.array([c for c, _, _ in rows], dtype=np.int64)
    time = cutoff + np.array([lead for _, lead, _ in rows], dtype=np.int64)
    due = time + np.array([lag for _, _, lag in rows], dtype=np.int64)
    old = data.draw(st.integers(0, count))
    if at_once:
        # those that are new come in the order of their times, those pending from before in any
        time[old:].sort()
        cutoff = due = time
    there, good = (np.array(data.draw(st.lists(flags, min_size=count, max_size=count)), dtype=bool) for _ in range(2))
    most = max(data.draw(st.integers(1, 10)), old)
    rounds = old + data.draw(st.integers(0, 9))
    issued = sorted(data.draw(st.permutations(range(1, rounds + 1)))[:old])
    before = Before(issued, rounds, data.draw(st.none() | st.sampled_from([0.0, 0.5, 2.0])))
    entries = Entries(time, cutoff, due, there, good)
    play = order_of_play(entries, before, at_once=at_once, most=most)
    slow, lost, given_up = slow_order(entries, before, at_once, most)
    assert play.events.tolist() == slow
    assert (play.lost, play.given_up) == (lost, given_up)


def test_outcomes_of_one_moment_come_in_the_order_of_times_then_of_cutoffs() -> None:
    """At cutoff 9 four outcomes are known at once; the forecasts were made in another order."""
    time, cutoff, yes = np.array([7, 5, 6, 5, 12]), np.array([0, 2, 1, 1, 9]), np.ones(5, dtype=bool)
    order = [3, 1, 2, 0]
    for old in (0, 4):
        before = Before(range(1, old + 1), old)
        events = order_of_play(Entries(time, cutoff, time, yes, yes), before, at_once=False, most=10).events
        assert [i for kind, i in events.tolist() if kind == SETTLE] == order
    events = order_of_play(Entries(time, time, time, yes, yes), Before(range(1, 5), 4), at_once=True, most=10).events
    assert events.tolist()[:4] == [[SETTLE, i] for i in (1, 3, 2, 0)]


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 4), st.booleans()), max_size=12))
def test_a_row_has_the_outcome_of_its_series_and_time(rows: list[tuple[int, int, bool]]) -> None:
    codes = np.array([code for code, _, _ in rows], dtype=np.intp)
    time = np.array([t for _, t, _ in rows], dtype=np.int64)
    told = np.array([has for _, _, has in rows], dtype=bool)
    true = 10.0 * codes + time
    n = np.arange(len(rows))
    due = np.where(told, time + 3, farthest(time))
    due[::2] = np.where(told[::2], time[::2] + 2, time[::2])  # of a row without an outcome it says nothing
    times = RowTimes("whole numbers", time, time, due, at_once=False, ranked=True)
    filled, filled_due, known = fill_outcomes(
        Streams(n, n[:1], codes[:1], [None], times), codes, ["a", "b"], np.where(told, true, np.nan)
    )
    there = {(code, t) for code, t, has in rows if has}
    expected = [y if (code, t) in there else np.nan for (code, t, _), y in zip(rows, true, strict=True)]
    np.testing.assert_array_equal(filled, np.array(expected, dtype=np.float64))
    assert [(codes[i], time[i]) for i in known] == sorted(there)
    assert told[known].all()
    for i, (code, t, _) in enumerate(rows):
        alike = [due[j] for j, (c, s, has) in enumerate(rows) if (c, s) == (code, t) and has]
        assert not alike or filled_due[i] == max(alike)


pairs = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=8)


@given(pairs, pairs.filter(len), st.integers(1, 4))
def test_the_dates_of_the_latest_cutoffs_are_remembered(
    before: list[tuple[int, int]], new: list[tuple[int, int]], most: int
) -> None:
    calendar = np.array(sorted(set(before)), dtype=np.int64).reshape(-1, 2) if before else None
    cutoff, time = np.array(new, dtype=np.int64).T
    latest = sorted({c for c, _ in before + new})[-most:]
    expected = sorted({(c, t) for c, t in before + new if c in latest})
    assert [tuple(row) for row in seen_dates(calendar, cutoff, time, most).tolist()] == expected
