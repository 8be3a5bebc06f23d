"""The order of play against its definition, written event by event."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from orcast.frame.ordering import Before, run_order
from orcast.kernels.records import DROP, PREDICT, SETTLE
from orcast.rounds import running_lag

flags = st.booleans() | st.just(True)


def slow_order(
    entries: tuple[Any, ...], before: Before, at_once: bool, most: int
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
                lag = running_lag(lag, float(count - issued[i]))

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
def test_the_order_of_run_rounds_is_its_definition(data: st.DataObject, at_once: bool, count: int) -> None:
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
    rows: Any = SimpleNamespace(time=time, cutoff=cutoff, due=due, known=there, value=np.where(good, 0.0, np.nan))
    events, *dropped = run_order(rows, before, at_once=at_once, most=most)
    slow, *slowly_dropped = slow_order((time, cutoff, due, there, good), before, at_once, most)
    assert events.tolist() == slow
    assert dropped == slowly_dropped
