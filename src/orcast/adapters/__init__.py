"""Whatever forecast a user holds, as what a game starts from: quantiles of a quantity, masses of finite cells."""

from __future__ import annotations

from orcast.adapters.finite import Array, binary_probability, masses_on
from orcast.adapters.ordered import (
    FINEST,
    REACH,
    Ensemble,
    Normal,
    Quantiles,
    beyond_doubles,
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
    "beyond_doubles",
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
    """What a game on a space takes from a user's forecast, and whether quantiles had to be sorted.

    Quantiles at the levels of an ordered space, masses on the cells of a finite one.

    >>> from orcast.spaces import Binary, Labels
    >>> expert_row({"draw": 0.25, "home": 0.75}, Labels(["home", "draw", "away"]))[0].tolist()
    [0.75, 0.25, 0.0]
    >>> expert_row(0.75, Binary())[0].tolist()
    [0.25, 0.75]
    """
    if isinstance(space, OrderedSpace):
        return expert_quantiles(forecast, space)
    return masses_on(forecast, space), False
