"""Features that a payoff uses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from orcast.contexts import Bins, Values
from orcast.engine.bound_payoff import leaves
from orcast.payoffs import Payoff, payoff_from_plain


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
