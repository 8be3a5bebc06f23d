"""sktime: forecasters whose intervals, quantiles and distributions stay calibrated (extra ``orcast[sktime]``).

Wrap a forecaster, and use it as any other of sktime's:

    model = RecalibratedForecaster(ThetaForecaster(sp=12), low=0).fit(y, fh=[1, 2, 3])
    model.predict_interval(coverage=0.9)
    model.update(y_new)

An outcome is scored against the forecasts that were issued for it: ``update`` issues the forecasts from before
``y_new``, the same that the methods which predict made, settles those that are about ``y_new``, keeps the others
pending, and fits the wrapped forecaster anew, as it was in the replay that taught the games.  All methods that predict
are pure.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.adapters import Quantiles
from orcast.constants import PER_ABSOLUTE
from orcast.engine import Oracle
from orcast.features import FeatureReader
from orcast.forecasts import Forecast
from orcast.integrations.common import HorizonGame, increasing_levels, recalibrator_for
from orcast.integrations.optional import needs
from orcast.integrations.skpro import LEVELS, ForecastDistribution
from orcast.ledger import Guarantee
from orcast.payoffs import Payoff
from orcast.recalibrator import Recalibrator
from orcast.residuals import Residuals
from orcast.spaces import between
from orcast.validation import as_count, short, warn_user

with needs("sktime", "pandas", "sktime"):
    import pandas as pd  # type: ignore[import-untyped]
    from sktime.forecasting.base import BaseForecaster, ForecastingHorizon  # type: ignore[import-untyped]

__all__ = ["ForecastDistribution", "RecalibratedForecaster"]

Array = NDArray[np.float64]

# How many rows of a long history are replayed by default: for each the forecaster is fitted and asked.
REPLAYED = 300
# What a forecaster raises when a history is too short for it.
TOO_SHORT = (ArithmeticError, LookupError, ValueError)
# Of the wrapped forecaster: what may be asked of it is up to it.
LIKE_IT = (
    "requires-fh-in-fit",
    "capability:exogenous",
    "capability:insample",
    "capability:missing_values",
    "capability:categorical_in_X",
    "capability:non_contiguous_X",
    "X-y-must-have-same-index",
    "enforce_index_type",
)


# --- the game of a step


@dataclass
class PointRecord:
    """Sums of absolute errors of the calibrated means and of the forecaster's own points, over settled rounds."""

    calibrated: float = 0.0
    own: float = 0.0

    @property
    def own_is_better(self) -> bool:
        """Whether the forecaster's own points were closer to the outcomes."""
        return self.own < self.calibrated


@dataclass
class StepGame:
    """The game of one step ahead, and which points came closer to the outcomes so far.

    >>> import orcast as oc
    >>> from orcast.residuals import Residuals
    >>> step = StepGame(HorizonGame(oc.Recalibrator(oc.Interval(0, 100)), Residuals(window=100)))
    >>> forecast = step.horizon.around(40.0)
    >>> step.keep(7, forecast, step.horizon.peek(forecast, None))
    >>> step.settle(7, 43.0)
    >>> step.points.own
    3.0
    """

    horizon: HorizonGame
    points: PointRecord = field(default_factory=PointRecord)
    issued: dict[int, tuple[float, float]] = field(default_factory=dict)  # means and own points of pending rounds

    @property
    def recalibrator(self) -> Recalibrator:
        """That of the game."""
        return self.horizon.recalibrator

    def answer(self, forecast: Any, features: Any) -> tuple[Forecast, float]:
        """A round as it would be issued now, and the point that goes with it; nothing is kept."""
        p: Forecast = self.horizon.preview(forecast, features)
        return p, self._own(forecast) if self.points.own_is_better else p.mean()

    def keep(self, time: int, forecast: Any, record: Any) -> None:
        """Keep a round that was played around a forecast, with its points."""
        self.horizon.keep(time, forecast, record)
        self.issued[time] = self.recalibrator.engine.forecast(record).mean(), self._own(forecast)

    def settle(self, time: int, outcome: float | None) -> None:
        """Record the outcome, in its canonical form, of a round; None if it will never come."""
        self.horizon.settle(time, outcome)
        mean, own = self.issued.pop(time)
        if outcome is not None:
            self.points.calibrated += abs(outcome - mean)
            self.points.own += abs(outcome - own)

    def _own(self, forecast: Any) -> float:
        space: Any = self.recalibrator.space
        return float(min(max(forecast.quantile(0.5), space.low), space.high))


@dataclass
class Replay:
    """Games by step, and the forecaster that taught them: how many rows it knows, and came since it was fitted."""

    games: dict[int, StepGame]
    forecaster: Any = None
    rows: int = 0
    age: int = 0


# --- times


class StepClock:
    """Counts steps from the end of the first history, whose times have one frequency."""

    def __init__(self, origin: Any) -> None:
        if isinstance(origin, pd.DatetimeIndex):
            if origin.tz is not None and origin.tz.utcoffset(None) is None:
                raise ValueError(f"expected times without a time zone, or in UTC, got times of {origin.tz}")
            if origin.freq is None:
                raise ValueError(
                    f"expected times of one frequency (y.asfreq gives them one), got none up to {origin[0]}"
                )
        self.origin = origin

    def times(self, index: Any) -> NDArray[np.int64]:
        """Times as numbers of steps since the origin."""
        if _kind(index) != _kind(self.origin):
            raise TypeError(f"expected times like {self.origin[0]}, got {index[0]}")
        origin = _without_zone(self.origin)
        horizon = ForecastingHorizon(_without_zone(index), is_relative=False, freq=origin)
        return np.asarray(horizon.to_relative(origin).to_numpy(), dtype=np.int64)

    def rows(self, X: Any) -> HorizonRows:
        """Rows of X by their times."""
        return HorizonRows(X, np.empty(0, dtype=np.int64) if X is None else self.times(X.index))

    def horizon(self, steps: Sequence[int]) -> Any:
        """Steps ahead as sktime has them."""
        return ForecastingHorizon(list(steps), is_relative=True, freq=self.origin)

    def dated(self, cutoff: Any) -> Any:
        """A cutoff with the frequency, which one row by itself has not."""
        if not isinstance(cutoff, pd.DatetimeIndex):
            return cutoff
        freq = self.origin.freq
        if not freq.is_on_offset(cutoff[0]):
            raise ValueError(f"expected times of the frequency {freq.freqstr}, got {cutoff[0]}")
        return pd.DatetimeIndex(cutoff, freq=freq)


class HorizonRows:
    """Rows of X by their times; without any, None of each."""

    __slots__ = ("X", "times")

    def __init__(self, X: Any, times: NDArray[np.int64]) -> None:
        self.X, self.times = X, times

    def until(self, time: int) -> Any:
        """Up to a time."""
        return None if self.X is None else self.X[self.times <= time]

    def between(self, start: int, stop: int) -> Any:
        """After a time, up to another."""
        return None if self.X is None else self.X[(self.times > start) & (self.times <= stop)]

    def ahead(self, steps: Sequence[int], now: int, all_or_none: bool) -> tuple[Sequence[int], Any]:
        """The steps whose rows are there, and the rows from the next up to the last of them."""
        if self.X is None or not steps:
            return steps, None
        there = set(self.times.tolist())
        found = [step for step in steps if now + step in there]
        if not found or (all_or_none and len(found) < len(steps)):
            return [], None
        return found, self.between(now, now + found[-1])


def _kind(index: Any) -> Any:
    """What times are: dates of a zone, periods of a frequency, or numbers."""
    if isinstance(index, pd.DatetimeIndex):
        return str(index.tz)
    return index.dtype if isinstance(index, pd.PeriodIndex) else index.dtype.kind in "iu"


def _without_zone(index: Any) -> Any:
    return index if getattr(index, "tz", None) is None else index.tz_localize(None)


# --- the forecaster


class RecalibratedForecaster(BaseForecaster):  # type: ignore[misc]
    """Forecaster around any forecaster of sktime, calibrated at each step ahead by itself.

    ``fit`` replays the history: from the first rows on a copy of the forecaster is brought up to date and asked for the
    steps of ``fh``, so each step's game has only out-of-sample forecasts.  ``update`` settles the forecasts issued
    before its rows and keeps the others pending; missing outcomes end their rounds.  If the forecaster wants X, give
    ``update`` the X of all steps that were asked for.  ``predict`` gives the calibrated mean at the steps where it was
    closer to past outcomes than the forecaster's own point, else that point.  Times have one frequency, and no time
    zone whose clocks are changed.

    Parameters
    ----------
    forecaster
        Asked for quantiles at ``levels`` if it has them (``capability:pred_int``), else, or with ``levels=()``, for
        points: means of Gaussians with sd = sqrt(pi / 2) * mean of |outcome - point| over the last ``window`` outcomes
        of the step.
    low, high, payoff, oracle, memory, outside
        As in :class:`orcast.Recalibrator`.  A payoff with a context finds its features in the rows of X.
    initial_window, step_length
        Rows before the replay, as a number or a share (by default a third, or all but the last 300), and rows between
        its cutoffs.  Each cutoff costs a fit.
    refit_every, update_params
        The forecaster is fitted anew as soon as so many rows have come since its last fit (1: always; None: never), and
        updated in between, in the replay and in ``update`` alike.  With another value than 1 the replayed forecaster
        itself is served.

    Fitted, it has ``forecaster_`` and ``recalibrators_``, an :class:`orcast.Recalibrator` by step.

    >>> import warnings
    >>> warnings.filterwarnings("ignore", "The default of config")  # sktime 1.2 warns of its next version
    >>> from sktime.datasets import load_airline
    >>> from sktime.forecasting.naive import NaiveForecaster
    >>> from orcast.integrations.sktime import RecalibratedForecaster
    >>> y = load_airline()
    >>> model = RecalibratedForecaster(NaiveForecaster(sp=12), low=0, levels=())
    >>> model.fit(y[:120], fh=[1, 12]).predict_interval(coverage=0.9).shape
    (2, 2)
    >>> model.guarantee(1).rounds, model.update(y[120:132]).guarantee(12).rounds
    (80, 81)
    """

    _tags = {  # noqa: RUF012
        "authors": "orcast contributors",
        "maintainers": "orcast contributors",
        "capability:multivariate": False,
        "capability:exogenous": True,
        "capability:insample": True,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:missing_values": True,
        "capability:update": True,
        "requires-fh-in-fit": False,
        "y_inner_mtype": "pd.Series",
        "X_inner_mtype": "pd.DataFrame",
    }
    _config = {"remember_data": False}  # noqa: RUF012
    _y: Any = None  # where sktime looks for its memory if it is set to have one
    _X: Any = None

    def __init__(
        self,
        forecaster: Any,
        low: float | None = None,
        high: float | None = None,
        *,
        levels: ArrayLike | None = None,
        payoff: Payoff | None = None,
        oracle: Oracle | None = None,
        memory: float | None = None,
        outside: str = "raise",
        initial_window: float | None = None,
        step_length: int = 1,
        refit_every: int | None = 1,
        update_params: bool = True,
        window: int = 100,
    ) -> None:
        self.forecaster = forecaster
        self.low, self.high, self.levels = low, high, levels
        self.payoff, self.oracle, self.memory, self.outside = payoff, oracle, memory, outside
        self.initial_window, self.step_length = initial_window, step_length
        self.refit_every, self.update_params, self.window = refit_every, update_params, window
        super().__init__()
        if not isinstance(forecaster, BaseForecaster):
            raise TypeError(f"expected a forecaster of sktime's, got {short(forecaster)}")
        self.clone_tags(forecaster, [tag for tag in LIKE_IT if tag in forecaster.get_tags()])
        if isinstance(payoff, Payoff) and FeatureReader(payoff):
            self.set_tags(**{"capability:exogenous": True})

    def guarantee(self, step: int = 1) -> Guarantee:
        """What was promised and what was kept, so far, of forecasts so many steps ahead."""
        self.check_is_fitted()
        if self._is_vectorized:
            raise ValueError("expected a forecaster of one series, got several: each of forecasters_ has its own")
        if step not in self._games:
            raise ValueError(f"expected one of the steps {short(sorted(self._games))}, got {short(step)}")
        return self._games[step].recalibrator.guarantee

    # --- fit
    def _fit(self, y: Any, X: Any, fh: Any) -> RecalibratedForecaster:
        self._quantile_levels = self._levels_to_ask()
        self._features = FeatureReader(self.payoff if isinstance(self.payoff, Payoff) else None)
        as_count(self.step_length, "a step_length of at least 1 row")
        if self.refit_every is not None:
            as_count(self.refit_every, "refit_every of at least 1 row, or None")
        _first_rows(self.initial_window, len(y))
        self._space = between(self.low, self.high)
        self._new_game(1, y)  # refuses what does not fit, before anything is fitted
        self._clock = StepClock(self.cutoff)
        self._outcomes(y, self._clock.times(y.index))
        self.forecaster_, self._age = self._copy().fit(y, X=X, fh=fh), 0  # and how many rows came since it was fitted
        self._seen_y, self._seen_X = y, X
        self._predictions: dict[tuple[int, ...], tuple[Any, Array]] = {}  # the forecaster's by steps, without X
        self._known = self._now = 0  # times of the last outcome, and of the forecaster
        self._games: dict[int, StepGame] = {}
        self._warned = False
        replay = self._add_games([] if fh is None else _ahead(self._relative(fh)))
        if not self._refits_always and replay.forecaster is not None:
            self.forecaster_, self._age = replay.forecaster, replay.age
            self._predictions.clear()
        return self

    def _levels_to_ask(self) -> list[float]:
        """The levels of the quantiles that the forecaster is asked for; none if it is asked for points."""
        has = self.forecaster.get_tag("capability:pred_int")
        if self.levels is None:
            return list(LEVELS) if has else []
        levels = increasing_levels(self.levels)
        if len(levels) == 1:
            raise ValueError(f"expected no levels, for points, or two and more, got {short(self.levels)}")
        if levels and not has:
            raise ValueError(f"expected a forecaster that has quantiles, got {short(self.forecaster)}")
        return levels

    def _copy(self) -> Any:
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("ignore")  # they were shown when it was made
            return self.forecaster.clone()

    @property
    def _refits_always(self) -> bool:
        """Whether the forecaster is fitted anew for each forecast."""
        return self.refit_every == 1 or (self.update_params and not self.forecaster.get_tag("capability:update"))

    def _is_due(self, age: int) -> bool:
        """Whether a forecaster is to be fitted anew when so many rows have come since it was."""
        return self._refits_always or (self.refit_every is not None and age >= self.refit_every)

    def _new_game(self, step: int, before: Any) -> StepGame:
        # as many rounds as are pending at once: those about the times up to the step
        game = HorizonGame(recalibrator_for(self, space=self._space, max_pending=step), Residuals(self.window))
        game.first_spread = _change(before, step)
        return StepGame(game)

    def _add_games(self, steps: Sequence[int]) -> Replay:
        replay = self._replayed(steps)
        self._games = {**self._games, **replay.games}
        self.recalibrators_ = {step: game.recalibrator for step, game in self._games.items()}
        return replay

    def _replayed(self, steps: Sequence[int]) -> Replay:
        """The games of steps, each after a replay of all that was seen."""
        if not steps and self._refits_always:
            return Replay({})
        y, X = _with_features(self._seen_y, self._seen_X)
        first = _first_rows(self.initial_window, len(y))
        replay = Replay({step: self._new_game(step, y.iloc[:first]) for step in steps})
        if first < len(y):
            # the fit to all rows gives them once; sktime itself resets filters, so that they are caught, not filtered
            with warnings.catch_warnings(record=True):
                warnings.simplefilter("ignore")
                self._play(replay, y, self._clock.rows(X), first)
        return replay

    def _play(self, replay: Replay, y: Any, rows: HorizonRows, first: int) -> None:
        """Forecast and settle the rows from the first on, as if they had come one step length after the other."""
        times, games, steps = self._clock.times(y.index), replay.games, list(replay.games)
        outcomes, horizon = self._outcomes(y, times), self._clock.horizon(steps) if steps else None
        for row in range(first, len(y), self.step_length):
            now = int(times[row - 1])
            self._bring(replay, y, rows, times, row, horizon)
            if replay.forecaster is not None and steps:
                there, X_ahead = rows.ahead(steps, now, self._all_or_none)
                fh = horizon if len(there) == len(steps) else None
                for step, forecast, x in self._read(replay.forecaster, games, there, X_ahead, fh)[1]:
                    if forecast is not None:
                        games[step].keep(now + step, forecast, games[step].horizon.peek(forecast, x))
            _settle(games, outcomes, int(times[min(row + self.step_length, len(y)) - 1]))
        if not self._refits_always:
            self._bring(replay, y, rows, times, len(y), horizon)

    def _bring(
        self, replay: Replay, y: Any, rows: HorizonRows, times: NDArray[np.int64], row: int, horizon: Any
    ) -> None:
        """The replayed forecaster up to a row; none if that is too few for it."""
        now, age = int(times[row - 1]), replay.age + row - replay.rows
        if replay.forecaster is not None and not self._is_due(age):
            X = rows.between(int(times[replay.rows - 1]), now)
            replay.forecaster.update(y.iloc[replay.rows : row], X=X, update_params=self.update_params)
            replay.age = age
        else:
            forecaster = self._copy().set_config(warnings="off")
            try:
                replay.forecaster, replay.age = forecaster.fit(y.iloc[:row], X=rows.until(now), fh=horizon), 0
            except TOO_SHORT:
                replay.forecaster = None
        replay.rows = row

    # --- the forecaster's own forecasts
    @property
    def _all_or_none(self) -> bool:
        """Whether the forecaster can be asked only for the steps that it was fitted for."""
        return bool(self.forecaster.get_tag("requires-fh-in-fit"))

    def _read(
        self, model: Any, games: Mapping[int, StepGame], steps: Sequence[int], X: Any, fh: Any = None
    ) -> tuple[Any, list[tuple[int, Any, Any]]]:
        """The times of steps, and of each the forecaster's forecast, None if that is not finite, and the features."""
        if not steps:
            return pd.Index([]), []
        levels, cached = self._quantile_levels, self._predictions if X is None and model is self.forecaster_ else {}
        if tuple(steps) not in cached:
            cached[tuple(steps)] = self._ask(model, steps, X, fh)
        index, table = cached[tuple(steps)]
        features: list[Any] = [None] * len(steps)
        if self._features and X is not None:
            features = [self._features.of(row) for row in X.loc[index].to_dict("records")]
        finite: list[bool] = np.isfinite(table.sum(axis=1)).tolist()
        rows: list[tuple[int, Any, Any]] = []
        for row, step, good, x in zip(table, steps, finite, features, strict=True):
            forecast: Any = None
            if good:
                forecast = Quantiles(levels, row) if levels else games[step].horizon.around(row.item())
            rows.append((step, forecast, x))
        return index.copy(), rows

    def _ask(self, model: Any, steps: Sequence[int], X: Any, fh: Any) -> tuple[Any, Array]:
        """The times of steps, and a row of quantiles or a point for each."""
        asked = None
        if not self._all_or_none:
            asked = self._clock.horizon(steps) if fh is None else fh
        if self._quantile_levels:
            found = model.predict_quantiles(fh=asked, X=X, alpha=self._quantile_levels)
            table = np.sort(np.asarray(found, dtype=np.float64), axis=1)
        else:
            found = model.predict(fh=asked, X=X)
            table = np.asarray(found, dtype=np.float64).reshape(-1, 1)
        if len(table) != len(steps):
            raise ValueError(f"expected a forecast for each of {len(steps)} steps, got {len(table)}")
        return found.index, table

    def _calibrated(
        self, steps: Sequence[int], X: Any, fh: Any = None
    ) -> tuple[Any, list[tuple[Forecast, float] | None]]:
        """The times of steps, their calibrated forecasts and points; None where the forecaster's own is not finite."""
        missing = [step for step in steps if step not in self._games]
        games = {**self._replayed(missing).games, **self._games} if missing else self._games
        index, rows = self._read(self.forecaster_, games, steps, X, fh)
        return index, [None if forecast is None else games[step].answer(forecast, x) for step, forecast, x in rows]

    # --- predict
    def _predict(self, fh: Any, X: Any) -> Any:
        steps = self._relative(fh)
        ahead = _ahead(steps)
        index, forecasts = self._calibrated(ahead, X, fh if len(ahead) == len(steps) else None)
        means = [math.nan if each is None else each[1] for each in forecasts]
        if len(ahead) == len(steps):
            return pd.Series(means, index=index, name=self._seen_y.name)
        own = self.forecaster_.predict(fh=fh, X=X).astype(np.float64)
        own.iloc[np.flatnonzero(np.array(steps) >= 1)] = means
        return own.rename(self._seen_y.name)

    def _predict_quantiles(self, fh: Any, X: Any, alpha: list[float]) -> Any:
        index, forecasts = self._calibrated(self._relative(fh), X, fh)
        nothing = np.full(len(alpha), math.nan)
        rows = np.array([nothing if each is None else each[0].quantile(alpha) for each in forecasts])
        return pd.DataFrame(rows, index=index, columns=pd.MultiIndex.from_product([self._get_varnames(), alpha]))

    def _predict_proba(self, fh: Any, X: Any, marginal: bool = True) -> ForecastDistribution:
        if not marginal:
            raise NotImplementedError("expected marginal=True, got False: each step has a distribution of its own")
        index, forecasts = self._calibrated(self._relative(fh), X, fh)
        if None in forecasts:
            raise ValueError("expected finite forecasts of the forecaster, got one that is not")
        columns = pd.Index(self._get_varnames())
        return ForecastDistribution([[each[0]] for each in forecasts if each], index=index, columns=columns)

    # --- update
    def _update(self, y: Any, X: Any = None, update_params: bool = True) -> Any:
        before = self.forecaster_.cutoff
        issued: list[tuple[StepGame, int, Any, Any]] = []
        try:
            times = self._clock.times(y.index)
            new = times > self._known
            outcomes = self._outcomes(y[new], times[new])
            now = self._now
            # a forecaster that was set back to the past knows what came after it
            if new.any() and now >= self._known:
                steps, X_ahead = self._to_score(now, X)
                for step, forecast, x in self._read(self.forecaster_, self._games, steps, X_ahead)[1]:
                    if forecast is not None:
                        game = self._games[step]
                        issued.append((game, now + step, forecast, game.horizon.peek(forecast, x)))
            cutoff = self._clock.dated(y.index[-1:])
            seen = _joined(self._seen_y, y), self._seen_X
            if self._seen_X is not None and X is not None:
                seen = seen[0], _joined(self._seen_X, X[X.index.isin(y.index)])
            forecaster, age = self._updated(seen, (y, X), int(new.sum()), update_params)
        except BaseException:
            self._set_cutoff(self._clock.dated(before))
            self.forecaster_._set_cutoff(before)
            raise
        for game, about, forecast, record in issued:
            game.keep(about, forecast, record)
        self._predictions.clear()
        self._set_cutoff(cutoff)
        self.forecaster_, self._age, self._now = forecaster, age, int(times[-1])
        self._seen_y, self._seen_X = seen
        if new.any():
            self._known = self._now
            _settle(self._games, outcomes, self._known)
        return self

    def _updated(
        self, seen: tuple[Any, Any], rows: tuple[Any, Any], count: int, update_params: bool
    ) -> tuple[Any, int]:
        """The forecaster after rows, so many of them new, and how many rows came since it was fitted."""
        age, (y, X) = self._age + count, rows
        if update_params and count and self._is_due(age):
            all_y, all_X = _with_features(*seen)
            # without the X of these rows, or with a gap in dates, there is nothing to fit to
            if all_y.index[-1] == y.index[-1] and (not isinstance(all_y.index, pd.DatetimeIndex) or all_y.index.freq):
                return self._copy().fit(all_y, X=all_X, fh=self._fh), 0
        if not update_params and not self._warned and (self.update_params or self._is_due(age)):
            self._warned = True
            warn_user(
                "update_params=False leaves the forecaster as it was fitted, but what is applied to its forecasts was "
                "learnt from one that was brought up to date (refit_every=None, update_params=False replays it so)",
                UserWarning,
            )
        self.forecaster_.update(y, X=X, update_params=update_params and self.update_params)
        return self.forecaster_, age

    def _to_score(self, now: int, X: Any) -> tuple[Sequence[int], Any]:
        """The steps whose forecasts were issued before an update, and their X."""
        wanted = [] if self._fh is None else self._relative(self._fh, self.forecaster_.cutoff)
        missing = [step for step in _ahead(wanted) if step not in self._games]
        if missing:
            self._add_games(missing)
        if self._all_or_none:
            steps = wanted if min(wanted, default=0) >= 1 else []
        else:
            steps = sorted(self._games)
        if X is None and self._seen_X is not None:
            return [], None
        return self._clock.rows(X).ahead(steps, now, self._all_or_none)

    # --- times
    def _relative(self, fh: Any, cutoff: Any = None) -> list[int]:
        relative = fh if fh.is_relative else fh.to_relative(self.cutoff if cutoff is None else cutoff)
        return [int(step) for step in relative.to_numpy()]

    def _outcomes(self, y: Any, times: NDArray[np.int64]) -> dict[int, float]:
        """Outcomes by time, in the space; those that are missing are left out."""
        values = y.to_numpy(dtype=np.float64).tolist()
        return {
            time: self._space.outcome(value, self.outside)
            for time, value in zip(times.tolist(), values, strict=True)
            if not math.isnan(value)
        }

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Examples for sktime's checks."""
        from sktime.forecasting.naive import NaiveForecaster  # type: ignore[import-untyped]
        from sktime.forecasting.trend import TrendForecaster  # type: ignore[import-untyped]

        trend = {"forecaster": TrendForecaster(), "low": -1000, "high": 1000, "update_params": False}
        return [
            {"forecaster": NaiveForecaster(), "initial_window": 0.8, "step_length": 3},
            {**trend, "initial_window": 0.8},
        ]


def _ahead(steps: Iterable[int]) -> list[int]:
    return [step for step in steps if step >= 1]


def _joined(seen: Any, rows: Any) -> Any:
    """Rows that were seen and others by their times; of two of one time the newer one."""
    both = pd.concat([seen, rows])
    both = both[~both.index.duplicated(keep="last")].sort_index()
    if isinstance(both.index, pd.DatetimeIndex) and len(both) > 2:
        both = both.set_axis(pd.DatetimeIndex(both.index, freq="infer"))
    return both


def _with_features(y: Any, X: Any) -> tuple[Any, Any]:
    """Rows whose X is known, and X."""
    return (y if X is None else y[y.index.isin(X.index)]), X


def _change(y: Any, step: int) -> float | None:
    """The spread of changes over so many steps, as that of residuals; None if there was no change."""
    values = y.to_numpy(dtype=np.float64)
    changes = np.abs(values[step:] - values[:-step])
    known = changes[~np.isnan(changes)]
    return PER_ABSOLUTE * float(known.mean()) or None if known.size else None


def _settle(games: Mapping[int, StepGame], outcomes: Mapping[int, float], upto: int) -> None:
    """All rounds about times that are over; those whose outcome is missing are dropped."""
    for game in games.values():
        for time in game.horizon.times:
            if time <= upto:
                game.settle(time, outcomes.get(time))


def _first_rows(initial_window: float | None, rows: int) -> int:
    """How many rows come before the replay."""
    if initial_window is None:
        return max(math.ceil(rows / 3), rows - REPLAYED, 1)
    real = isinstance(initial_window, (int, float, np.integer, np.floating)) and not isinstance(initial_window, bool)
    window = float(initial_window) if real else math.nan
    if 0.0 < window < 1.0:
        return max(math.floor(window * rows), 1)
    if window >= 1.0 and window.is_integer():
        return int(window)
    raise ValueError(f"expected an initial_window of at least 1 row, or a share, got {short(initial_window)}")
