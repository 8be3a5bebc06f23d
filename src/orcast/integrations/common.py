"""Recalibrators from the options of a wrapper, rounds of many rows, and columns of recalibrated frames."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.adapters import expert_row
from orcast.forecaster import Forecaster
from orcast.forecasts import as_levels
from orcast.frame.names import CERTIFICATE, OWN
from orcast.recalibrator import Recalibrator
from orcast.serialise import plain_features
from orcast.spaces import Binary, Labels, Space, between


def recalibrator_for(options: Any, space: Space | None = None, *, max_pending: int = 1000) -> Recalibrator:
    """Recalibrator with the options of a wrapper, by default of a quantity within its bounds."""
    return Recalibrator(
        between(options.low, options.high) if space is None else space,
        options.payoff,
        memory=options.memory,
        outside=getattr(options, "outside", "raise"),
        max_pending=max_pending,
    )


def label_space(labels: Sequence[Any]) -> Space:
    """Space of two labels, of which the second is forecast, or of more."""
    return Binary() if len(labels) == 2 else Labels(labels)


def has_parameter(function: Callable[..., Any], name: str) -> bool:
    """Return True if a function has a parameter of this name."""
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def increasing_levels(levels: ArrayLike) -> list[float]:
    """Levels in increasing order."""
    return sorted(np.atleast_1d(as_levels(levels)).ravel().tolist())


def quantile_columns(frame: Any, own: Sequence[float], asked: Sequence[float], wanted: Sequence[float]) -> list[Any]:
    """Columns of a recalibrated frame with quantiles at some levels, of those that it has or was asked for."""
    every = sorted({*own, *asked})
    end = next(i for i, name in enumerate(frame.columns) if name.endswith(f"{OWN}_{CERTIFICATE[0]}"))
    columns = frame.columns[end - len(every) : end]  # the last ones before the certificate, by their level
    return [columns[every.index(level)] for level in wanted]


def peek_each(
    recal: Forecaster, forecasts: Sequence[object], features: Sequence[Any] | None, outstanding: float = 0.0
) -> Iterator[Any]:
    """Records of rounds, each computed by itself from the game as it is; nothing is kept, and no slack reserved.

    At least as many outcomes count as outstanding as there usually were in the settled rounds.
    """
    rows = [expert_row(forecast, recal.space)[0][None, :] for forecast in forecasts]
    xs = [None] * len(rows) if features is None else [plain_features(x) for x in features]
    outstanding = max(outstanding, recal.rounds.usual_lag or 0.0)

    def peek(row: NDArray[np.float64], x: Any) -> Any:
        with recal.lock:
            return recal.rounds.peek(row, x, outstanding=outstanding, reserved=0.0)

    return map(peek, rows, xs)


def settle_together(
    recal: Forecaster,
    forecasts: Sequence[object],
    features: Sequence[Any] | None,
    outcomes: Sequence[Any],
    outstanding: float = 0.0,
) -> None:
    """Compute the rounds of `peek_each`, and settle them with outcomes in canonical form, which come together."""
    with recal.lock:
        records = list(peek_each(recal, forecasts, features, outstanding))
        for record, outcome in zip(records, outcomes, strict=True):
            recal.rounds.settle_unkept(record, outcome, lag=float(len(records) - 1))
