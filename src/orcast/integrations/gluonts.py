"""GluonTS: forecasts in, calibrated forecasts of the same class out (extra ``orcast[gluonts]``)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.frame import FrameState
from orcast.frame import recalibrate as recalibrate_frame
from orcast.integrations.common import increasing_levels, needs, quantile_columns
from orcast.spaces.base import numbers
from orcast.validation import short

with needs("gluonts", "gluonts", "pandas"), warnings.catch_warnings():
    # GluonTS warns about the JSON reader that it found
    warnings.filterwarnings("ignore", message="Using `json`-module")
    import pandas as pd  # type: ignore[import-untyped]
    from gluonts.model.forecast import QuantileForecast, SampleForecast  # type: ignore[import-untyped]
    from gluonts.model.predictor import Predictor  # type: ignore[import-untyped]

__all__ = ["RecalibratedPredictor", "recalibrate"]

Array = NDArray[np.float64]

ROLES: dict[str, Any] = {"series": "item_id", "time": "time", "cutoff": "cutoff", "horizon": "step", "y": "y"}
ABOUT = ["item_id", "time"]
MEAN, POINT = "mean", "point"
RECENT = 1000  # outcomes before the start of a forecast that may settle earlier ones


def recalibrate(
    forecasts: Iterable[Any],
    series: Iterable[Any],
    *,
    state: FrameState | str | os.PathLike[str] | None = None,
    quantiles: Sequence[float] | None = None,
    lead_time: int = 0,
    **options: Any,
) -> list[Any]:
    """Recalibrate forecasts, each from the outcomes that were known when it was issued.

    The results are of the same class; sample paths keep their ranks at each step.

    Parameters
    ----------
    forecasts
        ``QuantileForecast`` or ``SampleForecast`` objects, all with the same keys or number of samples.  One sample, or
        the mean or median alone, is read as Gaussian, with the spread of its past errors.
    series
        Outcomes, one series for each forecast: entries of a dataset (``start``, ``target``), or series of pandas with
        periods, as ``make_evaluation_predictions`` gives them.  They may go on after the start of the forecast.
    state
        Path or :class:`orcast.FrameState` that continues from call to call.
    quantiles
        Levels; the answers are then of class ``QuantileForecast`` at these.
    lead_time
        Periods between the last outcome that a forecast knew and its first step, as in GluonTS.
    **options
        Options of :func:`orcast.recalibrate`, such as ``low``, ``high`` and ``pool``.  Contexts of a ``payoff`` read
        ``hour`` and ``dayofweek`` of a step's time.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from gluonts.model.forecast import SampleForecast
    >>> y = pd.Series(np.random.default_rng(0).normal(50, 10, 60), pd.period_range("2026-01-01", periods=60, freq="D"))
    >>> samples = np.linspace(48, 52, 20)[:, None]  # far too narrow
    >>> forecasts = [SampleForecast(samples, start) for start in y.index]
    >>> after = recalibrate(forecasts, [y] * 60)
    >>> after[-1].samples.shape, bool(np.ptp(after[-1].samples) > 20)
    ((20, 1), True)
    """
    given, known = list(forecasts), list(series)
    if len(given) != len(known):
        raise ValueError(f"expected a series for each of {len(given)} forecasts, got {len(known)}")
    if not given:
        return []
    columns = _columns(given)
    rows = pd.concat([_forecast_rows(each, columns, lead_time) for each in given], ignore_index=True)
    parts = [_outcome_rows(*pair, lead_time) for pair in zip(given, known, strict=True)]
    outcomes = pd.concat(parts, ignore_index=True).drop_duplicates()
    for bound in (options.get("low"), options.get("high")):
        if isinstance(bound, (int, float)):  # targets have 32 bits, and a bound rounded so is the bound
            outcomes.loc[outcomes["y"] == np.float32(bound), "y"] = bound
    if rows.duplicated([*ABOUT, "cutoff"]).any() or outcomes.duplicated(ABOUT).any():
        raise ValueError("expected one forecast and outcome of an item at a time, got two (items need an item_id each)")
    others = outcomes[~pd.MultiIndex.from_frame(outcomes[ABOUT]).isin(pd.MultiIndex.from_frame(rows[ABOUT]))]
    frame = pd.concat([rows.merge(outcomes[[*ABOUT, "y"]], how="left"), others], ignore_index=True)
    if options.get("payoff") is not None:
        frame = frame.assign(hour=frame["time"].dt.hour, dayofweek=frame["time"].dt.dayofweek)
    levels = None if quantiles is None else increasing_levels(quantiles)
    model = {POINT: POINT} if columns == [POINT] else None
    after = recalibrate_frame(frame, model=model, levels=levels, state=state, **ROLES, **options)
    table = after.loc[: len(rows) - 1, _wanted(after, columns, levels)].to_numpy()
    cuts = np.cumsum([each.prediction_length for each in given])[:-1]
    return [_forecast(each, part.T, levels) for each, part in zip(given, np.split(table, cuts), strict=True)]


def _columns(forecasts: Sequence[Any]) -> list[str]:
    """Names of the columns of the forecasts, which all have one form."""
    forms = set()
    for each in forecasts:
        if isinstance(each, SampleForecast):
            form = tuple(f"sample_{i}" for i in range(len(each.samples)))
            shape = each.samples.shape
        elif isinstance(each, QuantileForecast):
            form = tuple(key if key == MEAN else f"q{key}" for key in each.forecast_keys)
            shape = each.forecast_array.shape
        else:
            raise TypeError(f"expected a QuantileForecast or a SampleForecast, got {short(each)}")
        if len(shape) != 2:
            raise ValueError(f"expected forecasts of one number a step, got shape {shape} (copy_dim takes one)")
        forms.add(form)
    if len(forms) > 1:
        raise ValueError(f"expected forecasts with the same keys or number of samples, got {short(list(forms))}")
    (columns,) = forms
    return [POINT] if columns in (("sample_0",), (MEAN,), ("q0.5",)) else list(columns)


def _forecast_rows(forecast: Any, columns: Sequence[str], lead_time: int) -> Any:
    table = forecast.samples if isinstance(forecast, SampleForecast) else forecast.forecast_array
    start, steps = forecast.start_date, np.arange(1, table.shape[1] + 1)
    cutoff = (start - lead_time - 1).to_timestamp()
    times = pd.period_range(start, periods=table.shape[1]).to_timestamp()
    about = {"item_id": str(forecast.item_id), "cutoff": cutoff, "time": times, "step": lead_time + steps}
    return pd.DataFrame({**about, **dict(zip(columns, table.astype(np.float64), strict=True))})


def _outcome_rows(forecast: Any, series: Any, lead_time: int) -> Any:
    """Rows with outcomes and without forecasts; each settles the pending forecasts of its time."""
    freq = forecast.start_date.freq
    if isinstance(series, Mapping) and {"start", "target"} <= series.keys():
        start, values = series["start"], series["target"]
        index = pd.period_range(start if isinstance(start, pd.Period) else pd.Period(start, freq), periods=len(values))
    elif isinstance(series, (pd.Series, pd.DataFrame)):
        index, values = series.index, series.squeeze("columns") if isinstance(series, pd.DataFrame) else series
        index = index.to_period(freq) if isinstance(index, pd.DatetimeIndex) else index
    else:
        raise TypeError(f"expected an entry with start and target, or a series of pandas, got {short(series)}")
    if not isinstance(index, pd.PeriodIndex) or index.freq != freq:
        raise ValueError(f"expected a series of the frequency {freq.freqstr}, as its forecast, got {index[:1]!r}")
    y = numbers(values, "numbers as outcomes")
    if y.shape != (len(index),):
        raise ValueError(f"expected outcomes of one number a time, got shape {y.shape}")
    good = np.isfinite(y) & (index > forecast.start_date - RECENT)
    about = {"item_id": str(forecast.item_id), "step": lead_time + 1}
    times = {"cutoff": (index[good] - lead_time - 1).to_timestamp(), "time": index[good].to_timestamp()}
    return pd.DataFrame({**about, **times, "y": y[good]})


def _wanted(after: Any, columns: Sequence[str], levels: Sequence[float] | None) -> list[str]:
    """Columns of the answers: those of the forecasts, or of levels."""
    if levels is None:
        return ["point_orcast"] if columns == [POINT] else [f"orcast_{name}" for name in columns]
    own = [0.5] if columns == [POINT] else [float(name[1:]) for name in columns if name.startswith("q")]
    return quantile_columns(after, own, levels, levels)


def _forecast(original: Any, out: Array, levels: Sequence[float] | None) -> Any:
    """Make the forecast with the numbers of a table."""
    about = {"start_date": original.start_date, "item_id": original.item_id, "info": original.info}
    if levels is not None:
        return QuantileForecast(out, forecast_keys=[repr(level) for level in levels], **about)
    if isinstance(original, SampleForecast):
        return SampleForecast(out.astype(original.samples.dtype), **about)
    return QuantileForecast(out.astype(original.forecast_array.dtype), forecast_keys=original.forecast_keys, **about)


class RecalibratedPredictor(Predictor):  # type: ignore[misc]
    """Calibrated predictor around any predictor of GluonTS.

    The entries that ``predict`` is given hold the outcomes of earlier forecasts of the same ``item_id``.

    Parameters
    ----------
    predictor
        Predictor, trained on data before the first forecast.
    state, quantiles, **options
        As in :func:`recalibrate`; a new :class:`orcast.FrameState` by default.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from gluonts.model.seasonal_naive import SeasonalNaivePredictor
    >>> naive = SeasonalNaivePredictor(prediction_length=2, season_length=7)
    >>> predictor = RecalibratedPredictor(naive, quantiles=[0.1, 0.5, 0.9], low=0)
    >>> y = np.random.default_rng(0).normal(50, 10, 60)
    >>> for days in range(30, 60):
    ...     entry = {"item_id": "north", "start": pd.Period("2026-01-01", "D"), "target": y[:days]}
    ...     (p,) = predictor.predict([entry])
    >>> p.forecast_array.shape, predictor.state.pending
    ((3, 2), 3)
    """

    def __init__(
        self,
        predictor: Any,
        *,
        state: FrameState | None = None,
        quantiles: Sequence[float] | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(predictor, Predictor):
            raise TypeError(f"expected a predictor of GluonTS, got {short(predictor)}")
        super().__init__(predictor.prediction_length, predictor.lead_time)
        self.predictor, self.quantiles, self.options = predictor, quantiles, options
        self.state = FrameState() if state is None else state

    def predict(self, dataset: Any, **kwargs: Any) -> Iterator[Any]:
        """Yield calibrated forecasts in the order of the dataset."""
        entries = list(dataset)
        forecasts = self.predictor.predict(entries, **kwargs)
        options = {"state": self.state, "quantiles": self.quantiles, "lead_time": self.lead_time, **self.options}
        yield from recalibrate(forecasts, entries, **options)
