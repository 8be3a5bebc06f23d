"""Snapshots of a series, and its replay from one of them after a revision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orcast.forecaster import Recalibrator
from orcast.store.states import SeriesState, State, decode_record, encode_record, rows_from
from orcast.store.tables import StoredRound, Tables, outcome_from
from orcast.validation import quietly, short

if TYPE_CHECKING:
    from orcast.store.stored import Store

# Events of a series from one snapshot to the next.
EVERY = 512


def keep_snapshot(tables: Tables, state: SeriesState) -> None:
    """Write a snapshot every `EVERY` events, seldom while many rounds are pending, all of which are in it."""
    if state.version % max(EVERY, 1 << len(state.pending).bit_length()) == 0:
        tables.put_snapshot(state.number, state.version, _encoded(state.held, state.pending.values(), state.number))


def _now(recal: Recalibrator, event: int, number: int) -> bytes:
    return _encoded(State.of(recal, event), recal.rounds.pending.values(), number)


def _encoded(state: State, pending: Any, number: int) -> bytes:
    """State and pending rounds as one row of bytes."""
    parts = [state.encode(number), *(encode_record(entry, number) for entry in pending)]
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def _parts(data: bytes) -> list[bytes]:
    """The inverse of `_encoded`."""
    parts, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        parts.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return parts


def start_of(tables: Tables, state: SeriesState, revised: StoredRound) -> int:
    """Event of the last snapshot before an outcome; refuses one whose successors are gone."""
    start = max((event for event in tables.snapshots(state.number) if event < revised.closed), default=0)
    if state.trimmed > start:
        raise ValueError(
            f"expected a round of series {short(state.name)} with all later ones to revise, "
            "got one whose successors are no longer remembered"
        )
    return start


def replay(store: Store, number: int, recal: Recalibrator, fresh: State, start: int) -> None:
    """Load the state into the recalibrator that the series would have with the outcomes as they are now.

    It begins with the snapshot of an event. Later snapshots, and the numbers of pending rounds, are rewritten.
    """
    tables = store.tables
    rounds = tables.since(number, start)
    _begin(tables, number, recal, fresh, rounds, start)
    stale = [event for event in tables.snapshots(number) if event > start]
    opened = {each.opened for each in rounds}
    steps = [(each.opened, 1, each) for each in rounds if each.opened > start]
    # one that made way for another is dropped when that one is issued
    steps += [(each.closed, 0, each) for each in rounds if each.closed and (each.y_text or each.closed not in opened)]
    with quietly():
        for event, opens, each in sorted(steps, key=lambda step: step[:2]):
            while stale and stale[0] < event:
                tables.put_snapshot(number, stale[0], _now(recal, stale.pop(0), number))
            _step(recal, each, opens=bool(opens))
    for event in stale:
        tables.put_snapshot(number, event, _now(recal, event, number))
    keys = {each.opened: each.key for each in rounds if not each.closed}
    for entry in recal.rounds.pending.values():
        tables.put_record(number, keys[entry.attached] or "", encode_record(entry, number))


def _begin(
    tables: Tables, number: int, recal: Recalibrator, fresh: State, rounds: list[StoredRound], start: int
) -> None:
    """Load the state at the start."""
    if not start:
        fresh.load_into(recal)
        return
    data, *records = _parts(tables.snapshot(number, start))
    State.decode(recal, data, number)
    open_then = [each for each in rounds if each.opened <= start]
    pending = [
        decode_record(recal, record, each.features, each.opened, number)
        for each, record in zip(open_then, records, strict=True)
    ]
    recal.rounds.pending = {each.id: entry for each, entry in zip(open_then, pending, strict=True)}


def _step(recal: Recalibrator, row: StoredRound, *, opens: bool) -> None:
    """Issue, settle or drop a round."""
    if opens:
        recal.rounds.issue(rows_from(row.base_bytes), row.features, id=row.id).attached = row.opened
    elif row.y_text is None:
        recal.rounds.drop(row.id)
    else:
        recal.rounds.settle(outcome_from(row.y_text), id=row.id)
