"""Users' forecasts as quantiles of a quantity or masses of finite cells."""

from __future__ import annotations

from orcast.adapters.finite import Array, binary_probability, masses_on
from orcast.adapters.ordered import (
    FINEST,
    REACH,
    Ensemble,
    Normal,
    Quantiles,
    expert_quantiles,
    expert_table,
    quantile_rows,
    quantiles_at,
    reach_of,
    within_reach,
)
from orcast.spaces import OrderedSpace, Space

__all__ = [
    "FINEST",
    "REACH",
    "Ensemble",
    "Normal",
    "Quantiles",
    "binary_probability",
    "expert_quantiles",
    "expert_row",
    "expert_table",
    "quantile_rows",
    "quantiles_at",
    "reach_of",
    "within_reach",
]


def expert_row(forecast: object, space: Space) -> tuple[Array, bool]:
    """Quantiles of a user's forecast at the levels of an ordered space, or its masses on a finite one.

    The second value is True if quantiles were sorted.

    >>> from orcast.spaces import Labels
    >>> expert_row({"draw": 0.25, "home": 0.75}, Labels(["home", "draw", "away"]))[0].tolist()
    [0.75, 0.25, 0.0]
    """
    if isinstance(space, OrderedSpace):
        return expert_quantiles(forecast, space)
    return masses_on(forecast, space), False
