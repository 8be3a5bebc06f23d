"""Forecasts that were issued, and how an outcome finds its own."""

from __future__ import annotations

import math
import pickle
from collections.abc import Hashable, Mapping
from typing import Any

from orcast.adapters import expert_row
from orcast.engine import Committee, Engine, Oracle
from orcast.game import Forecaster
from orcast.ledger import CertificateField
from orcast.payoffs import Payoff
from orcast.serialise import plain_features
from orcast.spaces import Space
from orcast.validation import short, warn_user

# A forecast waits for this many outcomes of others, and twice the longest wait that ended well, which fades.
PATIENCE = 100
FADE = 0.99
# So many outcomes in a row whose forecast was made for other features are no accident.
ASTRAY = 10


class PendingForecast:
    """A forecast, its round, what it was made for and around, and how many outcomes were known then."""

    __slots__ = ("forecast", "key", "known", "name", "point", "record", "reserves", "x")

    def __init__(self, record: Any, forecast: Any, point: float, known: int, x: Any, name: Hashable) -> None:
        self.record = record
        self.forecast = forecast
        self.point = point
        self.known = known
        self.x = x
        self.name = name
        self.key: Hashable = None  # what it is looked up by, once it is not the newest
        self.reserves = 0.0  # of the slack, while it is expected


class PendingBook:
    """A game and the forecasts that wait for their outcome.

    The newest is kept apart: its outcome usually comes next, and to compare features costs less than to hash them.

    Rounds that are expected to end make later ones careful, and reserve some of what these may risk.  So only as many
    are expected as the lags of past outcomes suggest; the rounds before these are parked: they are scored if their
    outcome comes after all, and given up in the end.
    """

    __slots__ = (
        "_astray",
        "_expected",
        "_longest",
        "_missed",
        "_most",
        "_newest",
        "_parked",
        "_reserved",
        "_settled",
        "game",
        "known",
    )

    def __init__(self, game: Forecaster, most: int) -> None:
        self.game = game
        self.known = 0
        self._newest: PendingForecast | None = None
        self._expected: dict[Hashable, PendingForecast] = {}
        self._parked: dict[Hashable, PendingForecast] = {}
        self._reserved = 0.0
        self._most = most
        self._longest = math.inf  # outcomes of others between a forecast and its own, at most; an old maximum fades
        self._astray = self._missed = 0  # outcomes in a row that went astray, and what was known at the last
        self._settled: Any = None  # the features that were learnt last

    def __len__(self) -> int:
        return len(self._expected) + len(self._parked) + (self._newest is not None)

    def find(self, x: Any, name: Hashable) -> PendingForecast | None:
        """The forecast that waits for the outcome of these features, or of a named round."""
        newest = self._newest
        if newest is not None and newest.name == name and (name is not None or _same(newest.x, x)):
            return newest
        if not (self._expected or self._parked):
            return None
        key = _key(x) if name is None else (name,)
        return self._expected.get(key) or self._parked.get(key)

    def issue(
        self, old: PendingForecast | None, told: object, point: float, features: Any, x: Any, name: Hashable
    ) -> PendingForecast:
        """A new round, in place of an old one for the same if there is one."""
        row, _ = expert_row(told, self.game.space)
        if features is not None:
            features = plain_features(features)
        if self._newest is not None:
            self._make_way(self._newest)
        engine = self.game.engine
        record = engine.predict(row[None, :], features, pending=float(len(self._expected)), reserved=self._reserved)
        entry = PendingForecast(
            record, engine.forecast(record), point, self.known, x.copy() if type(x) is dict else x, name
        )
        if old is not None:
            self._forget(old)
        self._newest = entry
        while (self._parked or self._expected) and len(self) > self._most:
            self._forget(next(iter((self._parked or self._expected).values())))
        return entry

    def _make_way(self, newest: PendingForecast) -> None:
        """The newest becomes one of those that are expected, and the oldest of them are parked."""
        newest.key = _key(newest.x) if newest.name is None else (newest.name,)
        for others in (self._expected, self._parked):
            if newest.key in others:  # features that are not equal to themselves
                self._forget(others[newest.key])
        self._newest = None
        newest.reserves = float(newest.record.certificate[CertificateField.OVERDRAFT])
        self._reserved += newest.reserves
        self._expected[newest.key] = newest
        self._park()

    def _park(self) -> None:
        """Rounds that are too many, or too old, to be expected."""
        usual = 2.0 * self._longest
        while self._expected:
            oldest = next(iter(self._expected.values()))
            if len(self._expected) <= usual and self.known - oldest.known <= usual:
                break
            self._forget(oldest)
            self._parked[oldest.key] = oldest

    def settle(self, entry: PendingForecast, outcome: Any) -> None:
        """The outcome of a round, and the end of those that have waited too long."""
        self._forget(entry)
        reserved = self._reserved
        if self._newest is not None:
            reserved += float(self._newest.record.certificate[CertificateField.OVERDRAFT])
        self.game.engine.update(entry.record, outcome, reserved=reserved)
        self._settled = entry.x
        if entry.known:  # before the first outcome of all, no lag could be seen
            longest = FADE * self._longest if self._longest < math.inf else 0.0
            self._longest = max(longest, float(self.known - entry.known))
        self.known += 1
        if self._expected:
            self._park()
        while self._parked:
            oldest = next(iter(self._parked.values()))
            if self.known - oldest.known <= PATIENCE + 2.0 * self._longest:
                break
            self._forget(oldest)

    def _forget(self, entry: PendingForecast) -> None:
        if entry is self._newest:
            self._newest = None
        elif self._parked.get(entry.key) is entry:
            del self._parked[entry.key]
        else:
            del self._expected[entry.key]
            # not by subtraction alone: nothing must be left of it when none is expected
            self._reserved = max(self._reserved - entry.reserves, 0.0) if self._expected else 0.0

    def __getstate__(self) -> dict[str, Any]:
        # the parts of a round may be closures, so it goes as its arrays and its engine makes it anew
        state = {name: getattr(self, name) for name in self.__slots__}
        state["_newest"] = None if self._newest is None else _plain(self._newest)
        for name in ("_expected", "_parked"):
            state[name] = [_plain(entry) for entry in state[name].values()]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        engine = state["game"].engine
        newest = state["_newest"]
        rounds = {name: [_from_plain(data, engine) for data in state[name]] for name in ("_expected", "_parked")}
        waiting = {name: {entry.key: entry for entry in entries} for name, entries in rounds.items()}
        for name, value in {**state, **waiting}.items():
            setattr(self, name, value)
        self._newest = None if newest is None else _from_plain(newest, engine)

    def look_out(self, x: Any) -> None:
        """Say it, once, if outcomes keep coming with other features than the forecast just before them."""
        newest = self._newest
        if newest is None or newest.known != self.known or newest.name is not None or _same(newest.x, self._settled):
            return
        if not (isinstance(x, Mapping) and isinstance(newest.x, Mapping) and x.keys() == newest.x.keys()):
            return
        if self._astray < ASTRAY:
            self._astray = self._astray + 1 if self._missed == self.known - 1 else 1
            self._missed = self.known
            if self._astray == ASTRAY:
                warn_user(
                    f"{ASTRAY} outcomes in a row came with other features than the forecasts just before them, and "
                    "were scored against forecasts of their own; in a pipeline wrap all of it, "
                    "Recalibrated(scaler | model), or name the rounds with id= (said once)",
                    UserWarning,
                )


def _plain(entry: PendingForecast) -> dict[str, Any]:
    fields = {name: getattr(entry, name) for name in entry.__slots__ if name not in ("record", "forecast")}
    arrays = {name: array.copy() for name, array in entry.record.arrays().items()}
    return {**fields, "record": (arrays, getattr(entry.record, "features", None))}


def _from_plain(data: dict[str, Any], engine: Engine) -> PendingForecast:
    entry = PendingForecast.__new__(PendingForecast)
    record = engine.restored_record(*data["record"])
    for name, value in {**data, "record": record, "forecast": engine.forecast(record)}.items():
        setattr(entry, name, value)
    return entry


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except ValueError:  # arrays among the features
        return _key(one) == _key(other)


def _key(x: Any) -> Hashable:
    """Features as something to look them up by: equal ones are the same, in any order."""
    try:
        return frozenset(x.items())
    except (AttributeError, TypeError):
        pass
    if isinstance(x, Mapping):
        return frozenset((name, pickle.dumps(value)) for name, value in x.items())
    return x if isinstance(x, Hashable) else pickle.dumps(x)


def game_of(
    space: Space,
    payoff: Payoff | None,
    oracle: Oracle | None,
    memory: float | None,
    outside: str = "raise",
    most: int = 1000,
) -> Forecaster:
    """What a Recalibrator plays."""
    oracle = Committee() if oracle is None else oracle
    return Forecaster(space, payoff, oracle=oracle, memory=memory, outside=outside, max_pending=most)


def most_pending(max_pending: object) -> int:
    """How many forecasts may wait, checked."""
    if isinstance(max_pending, bool) or not isinstance(max_pending, int) or max_pending < 1:
        raise ValueError(f"expected max_pending of at least 1, got {short(max_pending)}")
    return max_pending


def able(model: Any, *methods: str, what: str) -> Any:
    """The model, if it can do what is asked of it."""
    if isinstance(model, type) or not all(hasattr(model, method) for method in methods):
        raise TypeError(f"expected a River {what} with {' and '.join(methods)}, got {short(model)}")
    return model
