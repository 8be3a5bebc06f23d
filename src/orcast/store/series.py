"""A series of a store: the verbs of a `Recalibrator`, each of them one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from orcast import persistence
from orcast.forecaster import Recalibrator
from orcast.inputs import ALONE
from orcast.ledger import Guarantee
from orcast.rounds import checked_mode
from orcast.serialise import features_to_json, plain_features
from orcast.store import replay, times
from orcast.store.states import SeriesState, Shared, State, encode_record, forecast_bytes, rows_bytes, sizes_of
from orcast.store.tables import BASE, UNNAMED, StoredRound, as_stored, from_key, key, outcome_from, outcome_text, shown
from orcast.validation import short

if TYPE_CHECKING:
    from orcast.guard import Guard
    from orcast.monitors import Alarm, RecalibratorMonitor
    from orcast.store.stored import Store

GUARANTEE = ("rounds", "miscalibration", "promised", "held")


@dataclass(frozen=True, eq=False)
class Options:
    """Options of series: their number, their plain form, and objects whose functions are not in it."""

    number: int
    header: dict[str, Any]
    undone: int = 0  # rollbacks of the store after which they were read
    space: Any = None
    payoff: Any = None
    oracle: Any = None

    def given(self, **objects: Any) -> Options:
        """These options, with objects that are checked to be configured as the saved ones were."""
        for name, given in objects.items():
            if given is not None:
                persistence.as_saved(given, self.header[name], lambda plain: plain, name)
        if self._plain:
            return self
        objects = {name: given for name, given in objects.items() if given is not None}
        return replace(self, **objects) if objects else self

    @cached_property
    def _plain(self) -> bool:
        """True if the plain form is all."""
        try:
            self.make(None)
        except (TypeError, ValueError):
            return False
        return self.space is self.payoff is self.oracle is None

    def check(self, options: Mapping[str, Any], name: Any) -> None:
        """Refuse other options than a series began with."""
        for option, value in options.items():
            if option == "mode":  # which `change_mode` may have changed since
                checked_mode(value)
                continue
            saved, plain = self.header.get(option), [*value] if isinstance(value, (list, tuple)) else value
            if option not in self.header:
                raise TypeError(f"expected options of a Recalibrator for series {short(name)}, got {option}=")
            if saved != plain and not (option == "seasons" and saved == [plain]):
                raise ValueError(f"expected {option}={saved!r}, as series {short(name)} began, got {short(value)}")

    def make(self, pool: Any) -> Recalibrator:
        """A recalibrator with these options."""
        return persistence.made_from(
            self.header, cls=Recalibrator, payoff=self.payoff, space=self.space, oracle=self.oracle, pool=pool
        )

    def shared(self, store: Store) -> Shared:
        """The recalibrator that series with these options share."""
        pool = store.pool() if self.header["pool"] else None  # as other processes left it
        found = store.shared.get(self._same)
        if found is None:
            recal = self.make(pool)
            found = Shared(recal, State.of(recal))
            store.shared.put(self._same, found, found.size)
        return found

    @cached_property
    def _same(self) -> tuple[int, ...]:
        """Key of the recalibrator."""
        return self.number, id(self.space), id(self.payoff), id(self.oracle)


class StoredSeries:
    """A series of a store; see `orcast.open`.

    Each call is one transaction, on the state that the last one left, whichever process made it.  A call that is made
    again, with the same id and forecast or the same id and outcome, changes nothing and gets the same answer.

    Parameters
    ----------
    store, name, number, options : as `Store.series` makes them

    Examples
    --------
    >>> import orcast as oc
    >>> wind = oc.open().series("wind", space=oc.Interval(0, 36_000))
    >>> p = wind.predict(oc.Normal(9_000, 800), id="14:00", issued="2026-03-02T09:00Z", target="2026-03-03T14:00Z")
    >>> _ = wind.update(9_240, id="14:00", known="2026-03-03T15:10Z")
    >>> _ = wind.revise(9_310, id="14:00", known="2026-03-09")
    >>> wind.round("14:00").y, wind.guarantee.rounds
    (9310.0, 1)
    """

    def __init__(self, store: Store, name: Any, number: int, options: Options) -> None:
        self.store, self.name, self.number = store, name, number
        self._opened = options
        # outcome space
        self.space: Any = options.shared(store).recal.space

    def __repr__(self) -> str:
        return f"StoredSeries({self.name!r}, {self.space})"

    def options_of(self, number: int) -> Options:
        """Options of a state: those with which it was opened, unless its experts were named since."""
        if (number, self.store.undone) != (self._opened.number, self._opened.undone):
            given = {name: getattr(self._opened, name) for name in ("space", "payoff", "oracle")}
            self._opened = self.store.options(number, **given)
        return self._opened

    # --- the verbs of a recalibrator
    def predict(
        self,
        forecast: object = None,
        *,
        experts: Mapping[str, object] | None = None,
        x: Any = None,
        id: Hashable = None,
        horizon: Any = None,
        issued: Any = None,
        target: Any = None,
    ) -> Any:
        """A calibrated forecast for the next outcome, as of `Recalibrator.predict`.

        Parameters
        ----------
        forecast, experts, x, id : as of a `Recalibrator`
        horizon : text or number to be logged
        issued : time of the forecast; by default now
        target : time that it is about; by default that of the forecast
        """
        times = {"horizon": horizon, "issued": issued, "target": target}
        return self.issue(forecast, experts=experts, x=x, id=id, **times).forecast

    def issue(
        self,
        forecast: object = None,
        *,
        experts: Mapping[str, object] | None = None,
        x: Any = None,
        id: Hashable = None,
        horizon: Any = None,
        issued: Any = None,
        target: Any = None,
    ) -> StoredRound:
        """`predict`, with the stored round as result."""
        at = None if issued is None else times.microseconds(issued, "issued")
        about = at if target is None else times.microseconds(target, "target")
        names, id = (key(id), None if horizon is None else key(horizon)), as_stored(id)

        def work() -> StoredRound:
            now = self.store.now
            then = now if at is None else at, now if about is None else about
            row = StoredRound(names[0], 0, 0, names[1], *then, number=self.number, of=self)
            return self._issue(row, forecast, id, experts, x)

        return self.store.transact(work)

    def update(self, y: Any, *, id: Hashable = None, known: Any = None) -> StoredRound:
        """Settle a pending round with its outcome, which was known at a time; by default now."""
        at = None if known is None else times.microseconds(known, "known")
        return self.store.transact(lambda: self._settle(id, at, lambda recal: recal.space.outcome(y, recal.outside)))

    def drop(self, id: Hashable = None) -> StoredRound:
        """Forget a pending round whose outcome will never come; the guarantee excludes it."""
        return self.store.transact(lambda: self._settle(id, None, None))

    def revise(self, y: Any, *, id: Hashable = None, known: Any = None) -> StoredRound:
        """Replace the outcome of a settled round.

        The series is replayed with the new outcome, from the last snapshot before it: from now on it forecasts, and its
        guarantee is, as if the outcome had always been the new one.  Published forecasts stay in the log as they were,
        and so do the former outcomes with the times when they were known.
        """
        at = None if known is None else times.microseconds(known, "known")
        return self.store.transact(lambda: self._revise(y, id, at))

    def change_mode(self, mode: str) -> None:
        """Publish by another mode from now on, in all processes.

        Rounds that were published stay as they are.  After a revision the guard is as if this had always been the mode.

        Parameters
        ----------
        mode : "direct", "shadow" or "guarded"
        """
        self.store.transact(lambda: self._change_mode(checked_mode(mode)))

    @property
    def pending(self) -> tuple[Hashable, ...]:
        """Ids of the pending rounds, the oldest first; None is the unnamed one."""
        return self.store.transact(lambda: tuple(self.store.state(self).pending))

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee over the settled rounds."""
        return self.store.transact(lambda: self._loaded(self.store.state(self)).guarantee)

    @property
    def monitor(self) -> RecalibratorMonitor:
        """Monitors of the base forecasts and of the recalibrated ones, as of `Recalibrator.monitor`."""
        return self.store.transact(lambda: self._loaded(self.store.state(self)).monitor)

    @property
    def alarms(self) -> list[Alarm]:
        """Alarms of the monitors; none on spaces without PITs, where there are no monitors."""
        return self.store.transact(self._alarms)

    def _alarms(self) -> list[Alarm]:
        state = self.store.state(self)
        recal = self._loaded(state) if state.held.monitors else None
        return recal.monitor.alarms if recal is not None and any(map(any, recal.rounds.raised)) else []

    def when(self, round: int) -> str:
        """Time that a round is about, as text; rounds are counted as they are settled, as of alarms."""
        return self.store.transact(lambda: self._when(round))

    def _when(self, round: int) -> str:
        rounds = self._loaded(self.store.state(self)).monitor.rounds
        found = self.store.tables.settled(self.number, rounds - round) if round <= rounds else None
        return f"round {round:,}" if found is None else times.shown(found)

    @property
    def guard(self) -> Guard | None:
        """Comparison with the base forecast, as of `Recalibrator.guard`; None in direct mode."""
        return self.store.transact(lambda: self._loaded(self.store.state(self)).guard)

    def round(self, id: Hashable = None) -> StoredRound | None:
        """Round by its id; None if there is none."""
        return self.store.transact(lambda: self._find(key(id)))

    def history(self, limit: int = 100, *, before: Any = None, event: int = 0) -> list[StoredRound]:
        """Last rounds about times before a time, or about it and issued before an event, the newest first."""
        end = times.LAST if before is None else times.microseconds(before, "before")
        rows = self.store.tables.newest
        return self.store.transact(lambda: [self._own(row) for row in rows(self.number, end, event, limit)])

    # --- within a transaction
    def _loaded(self, state: SeriesState) -> Recalibrator:
        """The recalibrator with the rounds of this series."""
        return self.options_of(state.options).shared(self.store).load(state)

    def _find(self, name: str) -> StoredRound | None:
        row = self.store.tables.round(self.number, name)
        return None if row is None else self._own(row)

    def _own(self, row: StoredRound) -> StoredRound:
        row.of = self
        return row

    def _changed(self, state: SeriesState, recal: Recalibrator, *, issued: bool = False) -> None:
        """Take over the rounds of the recalibrator as the next version; `issued`: one was issued, nothing else."""
        self.store.changed(state)
        for id, entry in state.take(recal, issued=issued):
            self.store.tables.put_record(self.number, key(id), encode_record(entry, self.number))
        if recal.pool is not None:
            self.store.pool_changed()
        replay.keep_snapshot(self.store.tables, state)

    def _with_experts(self, state: SeriesState, experts: object) -> tuple[Recalibrator, int]:
        """The recalibrator, and the number of its options: the first forecast of a series names its experts."""
        recal = self._loaded(state)
        if recal.rounds.issued:
            return recal, state.options
        names = tuple(map(str, experts)) if isinstance(experts, Mapping) else (ALONE,)
        if not names or set(names) <= set(recal.experts):
            return recal, state.options
        shared, number = self._with_options({**self._opened.header, "experts": list(names)})
        shared.fresh.load_into(shared.recal)
        return shared.recal, number

    def _with_options(self, header: Mapping[str, Any]) -> tuple[Shared, int]:
        """Recalibrator with other options, into which none is loaded, and the number of the options."""
        given = {name: getattr(self._opened, name) for name in ("space", "payoff", "oracle")}
        options = self.store.options(self.store.add_options(header), **given)
        shared = options.shared(self.store)
        shared.loaded = None
        return shared, options.number

    def _change_mode(self, mode: str) -> None:
        state = self.store.state(self)
        shared, state.options = self._with_options({**self.options_of(state.options).header, "mode": mode})
        self._changed(state, shared.load(state))

    def _issue(self, row: StoredRound, forecast: object, id: Hashable, experts: Any, x: Any) -> StoredRound:
        store, tables = self.store, self.store.tables
        state = store.state(self)
        recal, options = self._with_experts(state, experts)
        rows, features = recal.read(forecast, experts, plain_features(x) if x is not None else None)
        row.base_bytes = rows_bytes(rows)
        row.x_text = None if features is None else json.dumps(features_to_json(features), sort_keys=True)
        evicted = tuple(each for each in recal.rounds.evicted_by(id) if each != id) if state.pending else ()
        # if no other round changes, adding the row tells whether its id is new
        likely = not state.version or not (id is None or id in state.pending or evicted)
        before = None if likely else self._find(row.key or UNNAMED)
        if before is not None and self._repeats(before, row, id):
            return self._again(before)
        if before is None and id is not None and id in state.pending:  # times that differ by less than a microsecond
            raise ValueError(f"expected a new id, got {short(id)}, which is pending already")
        entry = recal.rounds.issue(rows, features, id=id)
        row.opened = entry.attached = state.version + 1
        row.found, row.evicted = recal.rounds.forecast(entry), evicted
        if recal.rounds.base_published(entry.record) is not None:
            row.published = BASE
        row.forecast_bytes = forecast_bytes(row.found)
        if before is not None:
            self._close(before, row)
            tables.forget_unnamed(self.number)
        for other in evicted:
            self._close(self._find(key(other)), row)
        if not tables.add_round(row):
            store.forget()
            before = self._find(row.key or UNNAMED)
            assert before is not None
            self._repeats(before, row, id)
            return self._again(before)
        # the first one may name experts and sizes; the forecasts of a pool depend on other series
        same = options == state.options and sizes_of(recal) == state.held.sizes
        plain = same and before is None and not evicted and recal.pool is None
        state.options = options
        self._changed(state, recal, issued=plain)
        return row

    def _again(self, row: StoredRound) -> StoredRound:
        """The answer to a call that came before."""
        row.repeated, row.evicted = True, tuple(map(from_key, self.store.tables.evicted(self.number, row.opened)))
        return row

    def _repeats(self, before: StoredRound, row: StoredRound, id: Hashable) -> bool:
        """True for a call that came before; refuses another forecast under the id of a round."""
        same = before.base_bytes == row.base_bytes and before.x_text == row.x_text
        if id is None:
            return same and not before.closed
        if not same:
            text = f"expected a new id, or the same forecast again, got another forecast for {short(id)}"
            raise ValueError(f"{text}, which is {before.status}")
        return True

    def _close(self, row: StoredRound | None, other: StoredRound) -> None:
        """Close a round that makes way for another."""
        if row is not None and not row.closed:
            row.closed, row.known_at = other.opened, other.issued_at
            self.store.tables.put_outcome(row)

    def _settle(self, id: Hashable, at: int | None, outcome: Callable[[Recalibrator], Any] | None) -> StoredRound:
        """Settle a round with its outcome, or drop it."""
        state, id = self.store.state(self), as_stored(id)
        recal = self._loaded(state)
        y = None if outcome is None else outcome_text(outcome(recal))
        row = self._find(key(id))
        if row is not None and row.closed:
            self._check_same(row, id, y)
            row.repeated = True
            return row
        if row is not None and at is not None and at < row.issued_at:
            text = f"expected a time from {row.issued} on, when the forecast was issued, as known"
            raise ValueError(f"{text}, got {times.as_datetime(at)}")
        raised = recal.rounds.raised
        if y is None:
            recal.rounds.drop(id)
        else:
            recal.rounds.settle(outcome_from(y), id=id)
        assert row is not None  # else the id was refused
        row.closed, row.known_at = state.version + 1, self.store.now if at is None else at
        if y is not None:
            row.y_text, row.guarantee_text = y, self._told(recal, raised)
        self.store.tables.put_outcome(row)
        self._changed(state, recal)
        return row

    def _told(self, recal: Recalibrator, before: list[tuple[float, float]], alarms: Iterable[Alarm] = ()) -> str:
        """Guarantee after an outcome, and the alarms that it raised, as text; a revision keeps its `alarms`."""
        ledger: Any = recal.engine.ledger
        told = {name: getattr(ledger, name) for name in GUARANTEE}
        if ledger.excess:
            told["excess"] = ledger.excess
        new = [vars(alarm) for alarm in alarms]
        after = recal.rounds.raised
        if after != before:
            monitor = recal.monitor
            sides = zip(
                [monitor.output, *monitor.inputs.values()], before or [(0.0, 0.0)] * len(after), after, strict=True
            )
            changed = [side for side, was, now in sides if was != now]
            new = [vars(alarm) for side in changed for alarm in side.alarms if alarm.round == side.rounds]
        return json.dumps(told | {"alarms": new} if new else told)

    def _check_same(self, row: StoredRound, id: Hashable, y: str | None) -> None:
        """Refuse another outcome of a round that is over."""
        which = "the last round" if id is None else f"round {short(id)}"
        if row.y_text is None and y is not None:
            raise ValueError(f"expected the outcome of a pending round, got that of {which}, which was dropped")
        if y == row.y_text:
            return
        settled = short(row.y)
        if y is None:
            raise ValueError(f"expected a pending round to drop, got {which}, which was settled with {settled}")
        got = short(shown(self.space, outcome_from(y)))
        raise ValueError(f"expected {settled}, with which {which} was settled, got {got} (revise replaces an outcome)")

    def _revise(self, y: Any, id: Hashable, at: int | None) -> StoredRound:
        tables, state = self.store.tables, self.store.state(self)
        recal = self._loaded(state)
        text = outcome_text(recal.space.outcome(y, recal.outside))
        row = self._find(key(id))
        if row is None or row.y_text is None or row.known_at is None:
            what = "none of that id" if row is None else f"one that is {row.status}"
            raise ValueError(f"expected a settled round to revise, got {what}: {short(id)}")
        if recal.pool is not None:
            raise ValueError(f"expected a series by itself to revise, got {short(self.name)}, which is in a pool")
        if text == row.y_text:
            row.repeated = True
            return row
        start = replay.start_of(tables, state, row)
        if at is None:
            at = max(self.store.now, row.known_at)  # the clock may have been set back
        if at < row.known_at:
            raise ValueError(f"expected a time from {row.known} on as known, got {times.as_datetime(at)}")
        tables.add_revision(self.number, row.opened, state.version + 1, row.y_text, row.known_at)
        row.y_text, row.known_at, row.revisions = text, at, row.revisions + 1
        tables.put_outcome(row)
        replay.replay(self.store, self.number, recal, self._opened.shared(self.store).fresh, start)
        row.guarantee_text = self._told(recal, recal.rounds.raised, row.alarms)
        tables.put_outcome(row)
        self._changed(state, recal)
        return row
