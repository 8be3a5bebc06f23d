"""Optional imports, recalibrators from the options of a wrapper, and columns of recalibrated frames."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orcast.forecaster import Recalibrator
from orcast.forecasts import as_levels
from orcast.frame.names import CERTIFICATE, OWN
from orcast.spaces import Binary, Labels, Space, between


@contextmanager
def needs(extra: str, *packages: str) -> Iterator[None]:
    """Name the extra that installs a missing package."""
    try:
        yield
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in packages:
            raise
        raise ImportError(f"expected the extra orcast[{extra}] to be installed, got no {package}") from None


def recalibrator_for(options: Any, space: Space | None = None, *, max_pending: int = 1000) -> Recalibrator:
    """Recalibrator with the options of a wrapper, by default of a quantity within its bounds."""
    return Recalibrator(
        between(options.low, options.high) if space is None else space,
        options.payoff,
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
