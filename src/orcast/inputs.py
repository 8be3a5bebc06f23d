"""Inputs of users: features that a payoff uses, forecasts of a history as rows, outcomes in canonical form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.adapters import expert_row, expert_table
from orcast.contexts import Bins, Values
from orcast.engine.bound_payoff import leaves
from orcast.payoffs import Payoff, payoff_from_plain
from orcast.spaces import OrderedSpace, Space
from orcast.validation import short

Array = NDArray[np.float64]

# Name of an unnamed expert.
ALONE = "expert"


# --- features


def plain_payoff(payoff: Payoff) -> dict[str, Any]:
    """Plain form of a payoff, as saved in a file."""
    plain: dict[str, Any] = json.loads(json.dumps(payoff.to_plain()))
    return plain


def has_functions(payoff: Payoff) -> bool:
    """Return True if a payoff has functions, which its plain form omits."""
    try:
        payoff_from_plain(plain_payoff(payoff))
    except (AttributeError, KeyError, TypeError, ValueError):
        return True
    return False


def feature_names(payoff: Payoff) -> list[str]:
    """Names of the features of a payoff's contexts."""
    found = [leaf for part in payoff for leaf in leaves(part.context)]
    named = (
        leaf for leaf in found if isinstance(leaf, Values) or (isinstance(leaf, Bins) and leaf.source == "feature")
    )
    return sorted({leaf.key for leaf in named})


class FeatureReader:
    """Select the features that a payoff uses: none, some by name, or all if it has functions.

    >>> import orcast as oc
    >>> hours = oc.QuantileCalibration(context=oc.by("hour", values=range(24)))
    >>> FeatureReader(hours).of({"hour": 3, "site": object()}), FeatureReader(None).of({"hour": 3})
    ({'hour': 3}, None)
    """

    __slots__ = ("all", "names")

    def __init__(self, payoff: Payoff | None) -> None:
        self.names = [] if payoff is None else feature_names(payoff)
        self.all = payoff is not None and has_functions(payoff)

    def __bool__(self) -> bool:
        return self.all or bool(self.names)

    def of(self, x: Any) -> Any:
        """Selected features; None if there are none."""
        if self.all:
            return x
        if not self.names:
            return None
        return {name: x[name] for name in self.names if name in x} if isinstance(x, Mapping) else x


# --- histories


@contextmanager
def where(place: str) -> Iterator[None]:
    """Append a place to the message of an error."""
    try:
        yield
    except (TypeError, ValueError) as reason:
        raise (TypeError if isinstance(reason, TypeError) else ValueError)(f"{reason}{place}") from None


def sequence_of(values: Any, what: str) -> list[Any]:
    """Values of a sequence."""
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"expected a sequence of {what}, got {values!r}") from None


def read_outcomes(space: Space, outcomes: Any, outside: str) -> list[Any]:
    """Outcomes in the canonical form of their space."""
    found = []
    for row, y in enumerate(sequence_of(outcomes, "outcomes")):
        with where(f" in row {row}"):
            found.append(space.outcome(y, outside))
    return found


def read_history(
    space: Space, forecasts: Any, experts: Mapping[str, Any] | None, levels: ArrayLike | None
) -> tuple[dict[str, Array], bool]:
    """Rows of each expert, one per round, nan if missing, and True if any quantiles crossed."""
    if experts is None:
        rows, crossed = read_forecasts(space, forecasts, levels)
        if np.isnan(rows).any():
            raise ValueError("expected a forecast in every round, got None or nan")
        return {ALONE: rows}, crossed
    if forecasts is not None:
        raise TypeError("expected forecasts or experts=, got both")
    if not isinstance(experts, Mapping) or not experts or not all(isinstance(name, str) for name in experts):
        raise TypeError(f"expected experts= as sequences of forecasts by name, got {short(experts)}")
    read = {}
    for name, each in experts.items():
        with where(f" (expert {name!r})"):
            read[name] = read_forecasts(space, each, levels)
    lengths = {name: len(rows) for name, (rows, _) in read.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"expected as many forecasts of each expert, got {lengths}")
    empty = np.array([np.isnan(rows[:, 0]) for rows, _ in read.values()]).all(axis=0)
    if empty.any():
        raise ValueError(f"expected at least one expert in each round, got none in row {int(empty.argmax())}")
    return {name: rows for name, (rows, _) in read.items()}, any(crossed for _, crossed in read.values())


def is_missing(forecast: Any) -> bool:
    """Return whether a forecast is missing: nan, or a row of nan."""
    if isinstance(forecast, (float, np.ndarray)) or (isinstance(forecast, list) and forecast):
        try:
            return bool(np.isnan(np.asarray(forecast, dtype=np.float64)).all())
        except (TypeError, ValueError):
            return False
    return False


def read_forecasts(space: Space, forecasts: Any, levels: ArrayLike | None) -> tuple[Array, bool]:
    """Forecasts of one expert, one row per round; nan if missing."""
    width = len(space.levels) if isinstance(space, OrderedSpace) else space.cells
    if levels is not None:
        if not isinstance(space, OrderedSpace):
            raise TypeError(f"expected levels= only on ordered spaces, got them on {space!r}")
        return expert_table(levels, forecasts, space)
    each = sequence_of(forecasts, "forecasts")
    like_a_table = getattr(forecasts, "ndim", 1) == 2 or (each and isinstance(each[0], (list, np.ndarray)))
    if like_a_table and isinstance(space, OrderedSpace):
        raise TypeError("expected levels= with a table of one row of quantiles per round, got none")
    rows = np.full((len(each), width), np.nan)
    any_crossed = False
    for i, forecast in enumerate(each):
        if forecast is not None and not is_missing(forecast):
            with where(f" in row {i}"):
                rows[i], crossed = expert_row(forecast, space)
            any_crossed |= crossed
    return rows, any_crossed
