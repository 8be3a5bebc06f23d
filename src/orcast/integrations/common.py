"""Recalibrators from options and rounds in batches, for the wrappers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.adapters import expert_row
from orcast.engine import Oracle
from orcast.forecasts import as_levels
from orcast.game import Forecaster
from orcast.payoffs import Payoff
from orcast.recalibrator import Recalibrator
from orcast.serialise import plain_features
from orcast.spaces import OrderedSpace, between

# Columns of a recalibrated frame with the certificate, after those of the forecasts.
CERTIFICATE = 4


class QuantityOptions(Protocol):
    """Options that every wrapper of a quantity has."""

    low: float | None
    high: float | None
    payoff: Payoff | None
    oracle: Oracle | None
    memory: float | None
    outside: str


def recalibrator_for(
    options: QuantityOptions, *, space: OrderedSpace | None = None, max_pending: int = 1000, pool: Any = None
) -> Recalibrator:
    """The recalibrator of a quantity that the options of a wrapper ask for; many may share a space."""
    return Recalibrator(
        between(options.low, options.high) if space is None else space,
        options.payoff,
        oracle=options.oracle,
        memory=options.memory,
        outside=options.outside,
        max_pending=max_pending,
        pool=pool,
    )


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
    """Columns of a recalibrated frame with quantiles at some levels, of those that it has or was asked for.

    A frame has them last, by their level, before the columns of the certificate.
    """
    every = sorted({*own, *asked})
    columns = frame.columns[-CERTIFICATE - len(every) : -CERTIFICATE]
    return [columns[every.index(level)] for level in wanted]


def peek_each(
    game: Forecaster, forecasts: Sequence[object], features: Sequence[Any] | None, outstanding: float = 0.0
) -> Iterator[Any]:
    """Records of rounds, each played by itself from the game as it is; nothing is kept.

    At least as many outcomes count as outstanding as there usually were in the rounds that the game has learnt from.
    As the rounds are not kept none reserves slack, so that many do not make one another useless; what late
    outcomes cost is added to the promise when they are settled.
    """
    rows = [expert_row(forecast, game.space)[0][None, :] for forecast in forecasts]
    xs = [None] * len(rows) if features is None else [plain_features(x) for x in features]
    outstanding = max(outstanding, game.rounds.usual_lag or 0.0)

    def peek(row: NDArray[np.float64], x: Any) -> Any:
        with game.lock:
            return game.rounds.peek(row, x, outstanding=outstanding, reserved=0.0)

    return map(peek, rows, xs)


def settle_together(
    game: Forecaster,
    forecasts: Sequence[object],
    features: Sequence[Any] | None,
    outcomes: Sequence[Any],
    outstanding: float = 0.0,
) -> None:
    """Play the rounds of `peek_each`, and record their outcomes, each in its canonical form, which come together."""
    with game.lock:
        records = list(peek_each(game, forecasts, features, outstanding))
        for record, outcome in zip(records, outcomes, strict=True):
            game.rounds.settle_unkept(record, outcome, lag=float(len(records) - 1))
