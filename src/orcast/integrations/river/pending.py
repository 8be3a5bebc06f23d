"""River's pending forecasts: an outcome finds the one that was issued for its features."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from orcast.adapters import Normal, expert_row
from orcast.features import FeatureReader
from orcast.game import Forecaster
from orcast.rounds import Rounds
from orcast.serialise import plain_features
from orcast.validation import short, warn_user

# A forecast is pending for this many outcomes of others, and twice the longest lag of an outcome, which fades.
PATIENCE = 100
FADE = 0.99
# So many outcomes in a row whose features are not those of the forecast just before them are no accident.
MISMATCHES = 10


@dataclass(slots=True, eq=False)
class PendingForecast:
    """A pending round, and what it is found by."""

    id: int  # among the rounds of the game
    known: int  # outcomes that were known when it was issued
    point: float  # the mean of the model's forecast, if that is a Gaussian
    x: Any
    name: Hashable
    key: Hashable = None  # its features or name, hashed once it is not the newest


class PendingBook:
    """The pending rounds of a game, by the features they were issued for or by name.

    The newest is kept apart: its outcome usually comes next, and comparing features costs less than hashing them.

    Rounds whose outcome is expected make later ones cautious and reserve slack.  Only as many are expected as the lags
    of past outcomes suggest; older ones are parked: they reserve nothing, are settled if their outcome comes after all,
    and are dropped in the end.
    """

    def __init__(self, game: Forecaster, max_pending: int) -> None:
        self.game = game
        self.known = 0
        self._features = FeatureReader(game.payoff)
        self._max_pending = max_pending
        self._newest: PendingForecast | None = None
        self._older: dict[Hashable, PendingForecast] = {}  # the oldest first: those that are parked
        self._parked = Rounds(game.engine, max_pending)
        self._longest = math.inf  # outcomes of others between a forecast and its own, at most; an old maximum fades
        self._mismatches = self._last_mismatch = 0  # in a row, and what was known at the last
        self._settled_x: Any = None

    def __len__(self) -> int:
        return len(self._older) + (self._newest is not None)

    def __getstate__(self) -> dict[str, Any]:
        # rounds go as plain data: the parts of a record may be closures
        return {**vars(self), "_parked": self._parked.state()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._parked = Rounds(self.game.engine, self._max_pending)
        self._parked.resume(*state["_parked"])

    # --- what models ask
    def predict(self, x: Any, name: Hashable, read: Callable[..., object], options: Mapping[str, Any]) -> Any:
        """The forecast for these features, issued anew if it may have changed; `read` asks the model."""
        entry = self.find(x, name)
        if entry is None or entry.known != self.known or options or name is not None:
            entry = self._issue(entry, read(x, **options), x, name)
        return self.forecast(entry)

    def pending_for(self, x: Any, name: Hashable, read: Callable[..., object]) -> PendingForecast:
        """The round that an outcome settles; issued now if there was none."""
        entry = self.find(x, name)
        if entry is None and name is None and self._newest is not None and self._is_mismatch(self._newest, x):
            self._count_mismatch()
        return self._issue(None, read(x), x, name) if entry is None else entry

    def find(self, x: Any, name: Hashable) -> PendingForecast | None:
        """The pending forecast of these features, or of a name."""
        newest = self._newest
        if newest is not None and newest.name == name and (name is not None or _same(newest.x, x)):
            return newest
        if not self._older:
            return None
        return self._older.get(_key(x) if name is None else (name,))

    def forecast(self, entry: PendingForecast) -> Any:
        """What users see of a round."""
        rounds = self._rounds(entry)
        return rounds.forecast(rounds.pending[entry.id])

    def settle(self, entry: PendingForecast, outcome: Any) -> None:
        """Record the outcome of a round, and drop those that have been pending too long."""
        rounds = self.game.rounds
        if entry.id in rounds:
            rounds.settle(outcome, id=entry.id)
        else:
            record = self._parked.drop(entry.id).record
            rounds.settle_unkept(record, outcome, reserved=rounds.reserved)
        self._unlist(entry)
        self._settled_x = entry.x
        if entry.known:  # before the first outcome of all, no lag could be seen
            longest = FADE * self._longest if self._longest < math.inf else 0.0
            self._longest = max(longest, float(self.known - entry.known))
        self.known += 1
        self._park()
        while len(self._parked):
            oldest = next(iter(self._older.values()))
            if self.known - oldest.known <= PATIENCE + 2.0 * self._longest:
                break
            self._drop(oldest)

    # --- which rounds are pending
    def _issue(self, old: PendingForecast | None, forecast: object, x: Any, name: Hashable) -> PendingForecast:
        """A new round, in place of an old one for the same if there is one."""
        row, _ = expert_row(forecast, self.game.space)
        features = self._features.of(x)
        if features is not None:
            features = plain_features(features)
        if self._newest is not None:
            self._list(self._newest)
        rounds = self.game.rounds
        record = rounds.peek(row[None, :], features, outstanding=float(len(rounds)))
        if old is not None:
            self._drop(old)
        point = forecast.mean if isinstance(forecast, Normal) else math.nan
        entry = PendingForecast(rounds.issued, self.known, point, x.copy() if type(x) is dict else x, name)
        rounds.keep(record, id=entry.id)
        self._newest = entry
        while self._older and len(self) > self._max_pending:
            self._drop(next(iter(self._older.values())))
        return entry

    def _list(self, newest: PendingForecast) -> None:
        """The newest becomes one of those that are expected, and the oldest of them are parked."""
        newest.key = _key(newest.x) if newest.name is None else (newest.name,)
        if newest.key in self._older:  # features that are not equal to themselves
            self._drop(self._older[newest.key])
        self._newest = None
        self._older[newest.key] = newest
        self._park()

    @property
    def _expected(self) -> int:
        return len(self._older) - len(self._parked)

    def _park(self) -> None:
        """Rounds that are too many, or too old, to be expected."""
        usual = 2.0 * self._longest
        while self._expected:
            oldest = next(islice(self._older.values(), len(self._parked), None))
            if self._expected <= usual and self.known - oldest.known <= usual:
                break
            self._parked.keep(self.game.rounds.drop(oldest.id).record, id=oldest.id)

    def _drop(self, entry: PendingForecast) -> None:
        self._rounds(entry).drop(entry.id)
        self._unlist(entry)

    def _unlist(self, entry: PendingForecast) -> None:
        if entry is self._newest:
            self._newest = None
        else:
            del self._older[entry.key]

    def _rounds(self, entry: PendingForecast) -> Rounds:
        return self.game.rounds if entry.id in self.game.rounds else self._parked

    def _is_mismatch(self, newest: PendingForecast, x: Any) -> bool:
        """Whether an outcome comes with other features, of the same names, than the forecast just before it."""
        if newest.known != self.known or newest.name is not None or _same(newest.x, self._settled_x):
            return False
        return isinstance(x, Mapping) and isinstance(newest.x, Mapping) and x.keys() == newest.x.keys()

    def _count_mismatch(self) -> None:
        """Warn, once, if outcomes keep coming with other features than the forecast just before them."""
        if self._mismatches == MISMATCHES:
            return
        again = self._mismatches > 0 and self._last_mismatch == self.known - 1
        self._mismatches = self._mismatches + 1 if again else 1
        self._last_mismatch = self.known
        if self._mismatches == MISMATCHES:
            warn_user(
                f"{MISMATCHES} outcomes in a row came with other features than the forecasts just before them, and "
                "were scored against forecasts of their own; in a pipeline wrap all of it, "
                "RiverRegressor(scaler | model), or name the rounds with id= (reported once)",
                UserWarning,
            )


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


def checked_model(model: Any, *methods: str, kind: str) -> Any:
    """The model, if it has the methods that are needed."""
    if isinstance(model, type) or not all(hasattr(model, method) for method in methods):
        raise TypeError(f"expected a River {kind} with {' and '.join(methods)}, got {short(model)}")
    return model
