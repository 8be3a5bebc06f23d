"""sktime: forecasters whose intervals, quantiles and distributions stay calibrated (extra ``orcast[sktime]``).

``fit`` and ``update`` recalibrate frames of forecasts with one state.  All methods that predict are pure.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.forecasts import PERCENTS, Forecast
from orcast.frame import FrameState
from orcast.frame import recalibrate as recalibrate_frame
from orcast.integrations.common import needs, quantile_columns
from orcast.payoffs import Payoff
from orcast.spaces import between
from orcast.spaces.base import whole
from orcast.validation import number, short

with needs("sktime", "pandas", "skpro", "sktime"):
    import pandas as pd  # type: ignore[import-untyped]
    from skpro.distributions.base import BaseDistribution  # type: ignore[import-untyped]
    from sktime.forecasting.base import BaseForecaster, ForecastingHorizon  # type: ignore[import-untyped]

__all__ = ["ForecastDistribution", "RecalibratedForecaster"]

Array = NDArray[np.float64]

# Rows of a long history that are replayed by default: for each the forecaster is fitted and asked.
REPLAYED = 300
# Quantiles that a forecaster is asked for; a Gaussian comes through as it is.
LEVELS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
# Levels that a distribution is made of.
FINE = (0.001, 0.005, *PERCENTS.tolist(), 0.995, 0.999)
# Errors of a forecaster whose history is too short for it.
TOO_SHORT = (ArithmeticError, LookupError, ValueError)
ROLES: dict[str, Any] = {"time": "time", "cutoff": "cutoff", "horizon": "step", "y": "y"}
POINT = "point"
# Tags of the wrapped forecaster.
LIKE_IT = (
    "requires-fh-in-fit",
    "capability:exogenous",
    "capability:missing_values",
    "capability:categorical_in_X",
    "capability:non_contiguous_X",
    "X-y-must-have-same-index",
    "enforce_index_type",
)


class ForecastDistribution(BaseDistribution):  # type: ignore[misc]
    """Forecasts as a distribution of skpro, exact in ``ppf``, ``cdf``, ``pdf``, ``mean``, ``var`` and ``energy``.

    Parameters
    ----------
    forecasts
        One :class:`orcast.Forecast`, or rows of them.
    index, columns
        Names of the rows and columns.

    Examples
    --------
    >>> import orcast as oc
    >>> from orcast.integrations.sktime import ForecastDistribution
    >>> p = ForecastDistribution(oc.Forecast([0, 1], [1, 3], [0.5, 0.5]))
    >>> float(p.mean()), float(p.cdf(0.5)), float(p.ppf(0.75))
    (1.25, 0.25, 2.0)
    """

    _tags = {  # noqa: RUF012
        "capabilities:approx": ["pdfnorm"],
        "capabilities:exact": ["mean", "var", "energy", "pdf", "log_pdf", "cdf", "ppf"],
        "distr:measuretype": "mixed",
        "distr:paramtype": "nonparametric",
        "broadcast_init": "on",
    }

    def __init__(self, forecasts: Any, index: Any = None, columns: Any = None) -> None:
        self.forecasts = forecasts
        super().__init__(index=index, columns=columns)

    def _each(self, read: Any, *at: Any) -> Any:
        """A number of each forecast, and of a number for each."""
        return np.vectorize(read, otypes=[np.float64])(self._bc_params["forecasts"], *at)

    def _mean(self) -> Any:
        return self._each(Forecast.mean)

    def _var(self) -> Any:
        return self._each(Forecast.var)

    def _cdf(self, x: Any) -> Any:
        return self._each(Forecast.cdf, x)

    def _ppf(self, p: Any) -> Any:
        return self._each(Forecast.quantile, p)

    def _pdf(self, x: Any) -> Any:
        return self._each(Forecast.pdf, x)

    def _log_pdf(self, x: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(self._pdf(x))

    def _energy_self(self) -> Any:
        return self._each(_spread).sum(axis=-1 if self.ndim else None)

    def _energy_x(self, x: Any) -> Any:
        return self._each(_distance, x).sum(axis=-1 if self.ndim else None)

    def _iat(self, rowidx: int, colidx: int) -> ForecastDistribution:
        return type(self)(self._bc_params["forecasts"][rowidx, colidx])

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Examples for skpro's checks."""
        low, high = Forecast([0, 1], [1, 3], [0.5, 0.5]), Forecast([-np.inf, 2], [2, 3], [0.2, 0.8])
        atom = Forecast([0, 1, 1], [1, 1, 3], [0.25, 0.5, 0.25])
        rows = {"forecasts": [[low, high], [atom, low], [high, high]], "columns": pd.Index(["a", "b"])}
        return [{**rows, "index": pd.Index([3, 1, 2])}, {"forecasts": low}, {"forecasts": [[atom]]}]


def _distance(p: Forecast, x: float) -> float:
    """E|X - x|."""
    return p.crps(x) + 0.5 * _spread(p)


def _spread(p: Forecast) -> float:
    """E|X - Y| = 2 (E|X - x| - crps(x)) of two draws, at an end of a cell as x, where quadrature is exact."""
    x = float(p.right[0] if np.isfinite(p.right[0]) else p.left[0])
    return 2.0 * (p.expect(lambda y: np.abs(y - x)) - p.crps(x))


class RecalibratedForecaster(BaseForecaster):  # type: ignore[misc]
    """Calibrated forecaster around any forecaster of sktime, with a recalibrator for each step ahead.

    Parameters
    ----------
    forecaster
        Asked for quantiles if it has them (``capability:pred_int``), else for points, which are read as Gaussian with
        the spread of their past errors.
    low, high, payoff, outside
        As in :func:`orcast.recalibrate`.  Contexts of a payoff read the columns of X.
    initial_window, step_length
        Rows before the replay of ``fit``, as a number or a share (by default a third, or all but the last 300), and
        rows between its cutoffs.  At each cutoff a copy is fitted to the rows before it, and asked for the steps.

    Notes
    -----
    ``update`` scores the forecasts issued before its rows, and refits the forecaster; without new rows it changes
    nothing.  If the forecaster wants X,
    give ``update`` the X of all steps that were asked for.  ``state_`` is an :class:`orcast.FrameState`.

    Examples
    --------
    >>> import warnings
    >>> warnings.filterwarnings("ignore", "The default of config")  # sktime 1.2 warns of its next version
    >>> from sktime.datasets import load_airline
    >>> from sktime.forecasting.naive import NaiveForecaster
    >>> from orcast.integrations.sktime import RecalibratedForecaster
    >>> y = load_airline()
    >>> model = RecalibratedForecaster(NaiveForecaster(sp=12), low=0, step_length=4)
    >>> model.fit(y[:120], fh=[1, 12]).predict_interval(coverage=0.9).shape
    (2, 2)
    >>> model.update(y[120:130]).state_.pending
    1
    """

    _tags = {  # noqa: RUF012
        "capability:multivariate": False,
        "capability:exogenous": True,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:missing_values": True,
        "capability:update": True,
        "requires-fh-in-fit": False,
        "y_inner_mtype": "pd.Series",
        "X_inner_mtype": "pd.DataFrame",
    }
    _config = {"remember_data": False}  # noqa: RUF012
    _y: Any = None  # read by sktime if it is configured to remember data
    _X: Any = None

    def __init__(
        self,
        forecaster: Any,
        low: float | None = None,
        high: float | None = None,
        *,
        payoff: Payoff | None = None,
        outside: str = "report",
        initial_window: float | None = None,
        step_length: int = 1,
    ) -> None:
        self.forecaster = forecaster
        self.low, self.high, self.payoff, self.outside = low, high, payoff, outside
        self.initial_window, self.step_length = initial_window, step_length
        super().__init__()
        if not isinstance(forecaster, BaseForecaster):
            raise TypeError(f"expected a forecaster of sktime's, got {short(forecaster)}")
        self.clone_tags(forecaster, [tag for tag in LIKE_IT if tag in forecaster.get_tags()])
        if payoff is not None:
            self.set_tags(**{"capability:exogenous": True})

    def _fit(self, y: Any, X: Any, fh: Any) -> RecalibratedForecaster:
        # asked for all the steps that it was fitted for, or for none
        self._all_or_none = bool(self.forecaster.get_tag("requires-fh-in-fit"))
        self._own_levels = list(LEVELS) if self.forecaster.get_tag("capability:pred_int") else []
        self._columns = [f"q{level}" for level in self._own_levels] or [POINT]
        whole(self.step_length, "rows as step_length", 1, 10**9)
        between(self.low, self.high)
        self._origin = self.cutoff
        self.forecaster_ = self._copy().fit(y, X=X, fh=fh)
        self._seen = y, X
        self._steps = [] if fh is None else self._relative(fh)
        self.state_ = self._replayed(self._steps)
        return self

    def _copy(self) -> Any:
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("ignore")  # they were shown when it was made
            return self.forecaster.clone()

    # --- the cross-validation frame
    def _replayed(self, steps: Sequence[int]) -> FrameState:
        """State after a replay of all that was seen: forecasts of the rows by copies that have not seen them."""
        y, X = _with_features(*self._seen)
        first = _first_rows(self.initial_window, len(y))
        parts = []
        # the fit to all rows gives them once; sktime itself resets filters, so that they are caught, not filtered
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("ignore")
            for row in range(first, len(y) if steps else first, self.step_length):
                past = None if X is None else X[X.index <= y.index[row - 1]]
                try:
                    model = self._copy().set_config(warnings="off").fit(y.iloc[:row], X=past, fh=self._horizon(steps))
                except TOO_SHORT:
                    continue
                parts.append(self._ask(model, steps, X)[1])
        state = FrameState(remember=max(100, *steps, 0))  # rows; all that can be pending at once
        self._recalibrated(_rows_of(parts, self._columns), y.iloc[first:], state)
        return state

    def _recalibrated(self, rows: Any, known: Any, state: FrameState) -> Any:
        """Recalibrate rows of forecasts, and settle these and pending ones by known outcomes."""
        known = known.dropna()
        target = pd.DataFrame({"time": _stamps(known.index), "y": known.to_numpy(dtype=np.float64)})
        rows = rows.astype(dict.fromkeys(["time", "cutoff"], target["time"].dtype))
        features = [] if self.payoff is None or self._seen[1] is None else self._seen[1].columns
        rows = rows.reindex(columns=[*dict.fromkeys([*rows.columns, *features])])
        if not len(known) or not len(state):
            rows, target = rows.merge(target, how="left", on="time"), None
            if not len(rows):
                return rows
        options: dict[str, Any] = {"payoff": self.payoff, "outside": self.outside, "low": self.low, "high": self.high}
        options |= {"model": None if self._own_levels else {POINT: POINT}, "levels": FINE, "workers": 1}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "no row of target=")  # as after rows that were left out
            return recalibrate_frame(rows, target=target, state=state, **ROLES, **options)

    # --- the forecaster's own forecasts
    def _horizon(self, steps: Sequence[int]) -> Any:
        return ForecastingHorizon(list(steps), is_relative=True, freq=self._origin) if steps else None

    def _ask(self, model: Any, steps: Sequence[int], X: Any) -> tuple[Any, Any]:
        """Times of steps as sktime has them, and rows of forecasts; with X, of the steps whose X is there."""
        if X is not None and steps:
            times = self._horizon(steps).to_absolute_index(model.cutoff)
            found = times.isin(X.index)
            steps = [] if self._all_or_none and not found.all() else np.array(steps)[found].tolist()
            X = X[(X.index > model.cutoff[0]) & (X.index <= times[found].max())] if steps else None
        if not steps:
            return pd.Index([]), _rows_of([], self._columns)
        asked = None if self._all_or_none else self._horizon(steps)
        if self._own_levels:
            answer = model.predict_quantiles(fh=asked, X=X, alpha=self._own_levels)
        else:
            answer = model.predict(fh=asked, X=X)
        if len(answer) != len(steps):
            raise ValueError(f"expected a forecast for each of {len(steps)} steps, got {len(answer)}")
        table = np.sort(np.asarray(answer, dtype=np.float64).reshape(len(steps), -1), axis=1)
        rows = pd.DataFrame(table, columns=self._columns)
        rows = rows.assign(cutoff=_stamps(model.cutoff)[0], time=_stamps(answer.index), step=steps)
        if self.payoff is not None and X is not None:
            rows = pd.concat([rows, X.loc[answer.index].reset_index(drop=True)], axis=1)
        return answer.index, rows

    def _calibrated(self, fh: Any, X: Any) -> tuple[Any, list[Forecast | None]]:
        """Times of the steps ahead and their calibrated forecasts; None where the forecaster's own is not finite."""
        steps = self._relative(fh)
        state = deepcopy(self.state_) if set(steps) <= set(self._steps) else self._replayed(steps)
        index, rows = self._ask(self.forecaster_, steps, X)
        if not len(index):
            return index, []
        after = self._recalibrated(rows, self._seen[0].iloc[:0], state)
        levels = sorted({*(self._own_levels or [0.5]), *FINE})
        table = after[quantile_columns(after, levels, levels, levels)].to_numpy()
        # beyond the quantiles it is open-ended, or ends at the bounds
        low, high = (-math.inf if self.low is None else self.low), (math.inf if self.high is None else self.high)
        edges = (np.clip([low, *np.maximum.accumulate(row), high], low, high) for row in table)
        masses = np.diff([0.0, *levels, 1.0])
        return index, [Forecast(e[:-1], e[1:], masses) if not np.isnan(e).any() else None for e in edges]

    def _predict(self, fh: Any, X: Any) -> Any:
        index, forecasts = self._calibrated(fh, X)
        means = [math.nan if each is None else each.mean() for each in forecasts]
        return pd.Series(means, index=index, name=self._seen[0].name)

    def _predict_quantiles(self, fh: Any, X: Any, alpha: list[float]) -> Any:
        index, forecasts = self._calibrated(fh, X)
        nothing = np.full(len(alpha), math.nan)
        rows = np.array([nothing if each is None else each.quantile(alpha) for each in forecasts])
        return pd.DataFrame(rows, index=index, columns=pd.MultiIndex.from_product([self._get_varnames(), alpha]))

    def _predict_proba(self, fh: Any, X: Any, marginal: bool = True) -> ForecastDistribution:
        if not marginal:
            raise NotImplementedError("expected marginal=True, got False: each step has a distribution of its own")
        index, forecasts = self._calibrated(fh, X)
        if None in forecasts:
            raise ValueError("expected finite forecasts of the forecaster, got one that is not")
        return ForecastDistribution([[p] for p in forecasts], index=index, columns=pd.Index(self._get_varnames()))

    # --- update
    def _update(self, y: Any, X: Any = None, update_params: bool = True) -> Any:
        before = self.forecaster_.cutoff
        self._set_cutoff(self._dated(before))  # sktime has moved it, and y may be refused
        if _kind(y.index) != _kind(self._origin):
            raise TypeError(f"expected times like {self._origin[0]}, got {y.index[0]}")
        cutoff = self._dated(y.index[-1:])
        new = y[y.index > before[0]]
        if not len(new):
            return self
        rows = self._to_score(X)
        all_y, all_X = self._seen
        if all_X is not None and X is not None:
            all_X = _newer(all_X, X[X.index.isin(y.index)])
        seen = _newer(all_y, y), all_X
        forecaster = self._updated(seen, (y, X), update_params)
        state = deepcopy(self.state_)
        self._recalibrated(rows, new, state)
        self._set_cutoff(cutoff)
        self.forecaster_, self._seen, self.state_ = forecaster, seen, state
        return self

    def _to_score(self, X: Any) -> Any:
        """Forecasts that were issued before an update."""
        now = self.forecaster_.cutoff
        wanted = [] if self._fh is None else self._relative(self._fh, now)
        if X is None and self._seen[1] is not None:
            return _rows_of([], self._columns)
        if not set(wanted) <= set(self._steps):
            self._steps = sorted({*self._steps, *wanted})
            self.state_ = self._replayed(self._steps)
        steps = self._steps if not self._all_or_none else wanted if len(wanted) == len(self._fh) else []
        return self._ask(self.forecaster_, steps, X)[1]

    def _updated(self, seen: tuple[Any, Any], rows: tuple[Any, Any], refit: bool) -> Any:
        """Forecaster after rows: refitted, as in the replay, or only moved on."""
        (all_y, all_X), (y, X) = _with_features(*seen), rows
        # without the X of these rows, or with a gap in dates, there is nothing to fit to
        whole_dates = not isinstance(all_y.index, pd.DatetimeIndex) or all_y.index.freq
        if refit and all_y.index[-1] == y.index[-1] and whole_dates:
            return self._copy().fit(all_y, X=all_X, fh=self._fh)
        return deepcopy(self.forecaster_).update(y, X=X, update_params=False)

    # --- times
    def _relative(self, fh: Any, cutoff: Any = None) -> list[int]:
        """Steps ahead; times that have passed are left out."""
        relative = fh if fh.is_relative else fh.to_relative(self.cutoff if cutoff is None else cutoff)
        return [int(step) for step in relative.to_numpy() if step >= 1]

    def _dated(self, cutoff: Any) -> Any:
        """Cutoff with the frequency, which one row by itself has not."""
        if not isinstance(cutoff, pd.DatetimeIndex):
            return cutoff
        freq = self._origin.freq
        if not freq.is_on_offset(cutoff[0]):
            raise ValueError(f"expected times of the frequency {freq.freqstr}, got {cutoff[0]}")
        return pd.DatetimeIndex(cutoff, freq=freq)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Examples for sktime's checks."""
        from sktime.forecasting.naive import NaiveForecaster  # type: ignore[import-untyped]
        from sktime.forecasting.trend import TrendForecaster  # type: ignore[import-untyped]

        return [
            {"forecaster": NaiveForecaster(), "initial_window": 0.8, "step_length": 3},
            {"forecaster": TrendForecaster(), "low": -1000, "high": 1000, "initial_window": 0.8},
        ]


def _rows_of(parts: Sequence[Any], columns: Sequence[str]) -> Any:
    parts = [each for each in parts if len(each)]  # one without rows has other types
    if parts:
        return pd.concat(parts, ignore_index=True)
    return pd.DataFrame(columns=["cutoff", "time", "step", *columns], dtype=np.float64)


def _stamps(index: Any) -> Any:
    """Times as a frame reads them: periods by their start."""
    return index.to_timestamp() if isinstance(index, pd.PeriodIndex) else index


def _kind(index: Any) -> Any:
    """Kind of times: dates of a zone, periods of a frequency, or numbers."""
    if isinstance(index, pd.DatetimeIndex):
        return str(index.tz)
    return index.dtype if isinstance(index, pd.PeriodIndex) else index.dtype.kind in "iu"


def _newer(seen: Any, rows: Any) -> Any:
    """Rows that were seen with others; of two of one time the newer one."""
    both = pd.concat([seen, rows])
    both = both[~both.index.duplicated(keep="last")].sort_index()
    if isinstance(both.index, pd.DatetimeIndex) and len(both) > 2:
        both = both.set_axis(pd.DatetimeIndex(both.index, freq="infer"))
    return both


def _with_features(y: Any, X: Any) -> tuple[Any, Any]:
    """Rows whose X is known, and X."""
    return (y if X is None else y[y.index.isin(X.index)]), X


def _first_rows(initial_window: float | None, rows: int) -> int:
    """Number of rows before the replay."""
    if initial_window is None:
        return max(math.ceil(rows / 3), rows - REPLAYED, 1)
    window = number(initial_window, "an initial_window of at least 1 row, or a share", 0.0)
    return max(math.floor(window * rows), 1) if window < 1.0 else int(window)
