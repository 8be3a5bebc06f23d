"""Which of a round's features a payoff looks at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from orcast.contexts import Bins, Values
from orcast.engine.bound_payoff import leaves
from orcast.payoffs import Payoff, payoff_from_plain


def plain_payoff(payoff: Payoff) -> dict[str, Any]:
    """The plain form of a payoff, as a file has it."""
    plain: dict[str, Any] = json.loads(json.dumps(payoff.to_plain()))
    return plain


def has_functions(payoff: Payoff) -> bool:
    """Whether a payoff has functions, and so cannot be made from its plain form."""
    try:
        payoff_from_plain(plain_payoff(payoff))
    except (AttributeError, KeyError, TypeError, ValueError):
        return True
    return False


def feature_names(payoff: Payoff) -> list[str]:
    """The features that a payoff's contexts look at by name."""
    found = [leaf for part in payoff for leaf in leaves(part.context)]
    named = (
        leaf for leaf in found if isinstance(leaf, Values) or (isinstance(leaf, Bins) and leaf.source == "feature")
    )
    return sorted({leaf.key for leaf in named})


class FeatureReader:
    """Which features a payoff looks at: none, some by name, or all, since it has functions.

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
        """Those of a round's features that the payoff looks at; None if it looks at none."""
        if self.all:
            return x
        if not self.names:
            return None
        return {name: x[name] for name in self.names if name in x} if isinstance(x, Mapping) else x
