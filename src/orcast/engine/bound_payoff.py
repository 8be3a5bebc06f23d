"""Payoff bound to a space: its parts, names, contexts and places in the ledger."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast import limits
from orcast.contexts import EVERYONE, Bins, Context, ContextInputs, Everyone, LastError, Product, Union, Values
from orcast.kernels.state import Layout
from orcast.ledger import Account, Empirical, Guarantee, Ledger, PartShape, ledger_layout
from orcast.payoffs import NoRegret, Part, Payoff, part_names
from orcast.spaces import Space

Array = NDArray[np.float64]

ONE: Array = np.ones(1)
# Confidence of the bound on the empirical error, and the constant of its mixture (docs/theory.md).
CONFIDENCE, MIXTURE = 0.95, 64.0


class Learning(NamedTuple):
    """Corrections of the base forecast before the last layer.

    committee : True if there is a committee, on ordered spaces
    pooled : True if its members learn over a pool too
    finite : options of the members on finite spaces, in the columns of `kernels.records`
    """

    committee: bool = False
    pooled: bool = False
    finite: Array = np.empty((0, 3))


NO_LEARNING = Learning()


def leaves(context: Context) -> list[Context]:
    """Simple contexts of a compound context."""
    if isinstance(context, (Product, Union)):
        return [*leaves(context.first), *leaves(context.second)]
    return [context]


def overall_norm(context: Context) -> float | None:
    """Norm of a vector whose product with every context is 1; None if there is none."""
    if isinstance(context, Everyone):
        return 1.0
    if isinstance(context, (Values, Bins)):
        return math.sqrt(context.size)  # the shares of a round sum to 1
    if not isinstance(context, (Product, Union)):
        return None
    norms = overall_norm(context.first), overall_norm(context.second)
    if isinstance(context, Union):
        return min((norm for norm in norms if norm is not None), default=None)
    return None if None in norms else math.prod(norms)  # type: ignore[arg-type]


def beyond_smoothed(spread: float) -> float:
    """Bound on the sum of empirical minus smoothed errors; `spread` is the sum of its largest possible squares."""
    whole = spread + MIXTURE
    return math.sqrt(whole * (2.0 * math.log(1.0 / (1.0 - CONFIDENCE)) + math.log(whole / MIXTURE)))


class BoundPayoff:
    """Parts of a payoff on a space, with the names of the experts."""

    def __init__(
        self, space: Space, payoff: Payoff, experts: Sequence[str], memory: float | None, *, drawn: bool = False
    ) -> None:
        self.space, self.drawn = space, drawn
        self.experts = tuple(experts)
        self.payoffs = list(payoff)
        self.parts: list[Part] = [part.on(space, len(self.experts)) for part in self.payoffs]
        self.names = part_names(self.payoffs)
        self.discount = 1.0 if memory is None else 1.0 - 1.0 / memory
        simple = [leaf for part in self.payoffs for leaf in leaves(part.context)]
        self.needs_expert = any(isinstance(leaf, Bins) and leaf.source != "feature" for leaf in simple)
        self.needs_last = any(isinstance(leaf, LastError) for leaf in simple)
        self.plain = all(part.context is EVERYONE for part in self.payoffs)
        self._ones = np.ones(len(self.payoffs))

    def context(self, known: ContextInputs) -> Array:
        """Concatenated contexts of all parts."""
        if self.plain:
            return self._ones
        return np.concatenate([ONE if p.context is EVERYONE else p.context(known) for p in self.payoffs])

    def layout(self, places: Sequence[Sequence[int]]) -> Layout:
        """Layout of the parts in the ledger, given their places in the core."""
        pairs = zip(self.parts, places, strict=True)
        limits.check("coordinates", sum(len(own) * part.context.size for part, own in pairs))
        shapes = []
        for part, own in zip(self.parts, places, strict=True):
            payoff, reach = part.payoff, part.context.bound
            if payoff.one_sided and isinstance(payoff, NoRegret):
                scale, bound = payoff.weight, payoff.weight**2 * part.bound  # its units already bound the size
            else:
                scale = payoff.weight / float(np.sqrt(part.bound * reach))
                bound = payoff.weight**2 / reach
            shapes.append(PartShape(own, part.context.size, payoff.one_sided, scale, bound, reach))
        return ledger_layout(shapes, self.discount)

    @property
    def empirical_levels(self) -> Array:
        """Levels of the empirical error: those of the first quantile payoff."""
        grids = (part.payoff.levels for part in self.parts if part.kind == "quantile")  # type: ignore[attr-defined]
        levels: Array = next(grids, np.empty(0))
        return levels

    def empirical(self, ledger: Ledger, levels: Array, sums: Array) -> Empirical | None:
        """Empirical error from sums at these levels, and its bound; None without quantile payoffs."""
        own = self.empirical_levels
        if not own.size:
            return None
        counts = sums[levels.size :]
        errors = sums[np.searchsorted(levels, own)] / max(float(counts[1]), 1.0)
        counted = [
            part.kind == "quantile" and np.array_equal(part.payoff.levels, own)  # type: ignore[attr-defined]
            for part in self.parts
        ]
        root = self.empirical_bound(ledger, counted, counts)
        return Empirical({"qce": float(errors @ errors)}, {} if root is None else {"qce": root * root}, CONFIDENCE)

    def empirical_bound(self, ledger: Ledger, counted: Sequence[bool], counts: Array) -> float | None:
        """Bound on the norm of the mean empirical payoff of the parts that are `counted`; None if there is none."""
        spread, weight, without = counts.tolist()
        factors = []
        for part, scale, own in zip(self.parts, ledger.layout.scales.tolist(), counted, strict=True):
            norm = overall_norm(part.context) if own else None
            if norm is not None:
                factors.append(norm / scale)
        # every outcome in the ledger must have been counted, with a draw
        whole = without == 0.0 < weight and weight >= ledger.account[Account.WEIGHT] * (1.0 - 1e-9)
        if not factors or not whole:
            return None
        return min(factors) * (ledger.promised + ledger.excess) + beyond_smoothed(max(spread, 0.0)) / weight

    def guarantee(
        self,
        ledger: Ledger,
        regrets: dict[int, dict[str, float]],
        seen: dict[int, Array] | None = None,
        empirical: Empirical | None = None,
    ) -> Guarantee:
        """Bounds and miscalibration, from regrets in units of scores and the rounds in which experts were `seen`."""
        parts: dict[str, float] = {}
        bounds: dict[str, float] = {}
        groups = {}
        rounds = max(float(ledger.account[Account.WEIGHT]), 1.0)
        promised = ledger.promised
        for number, (part, name) in enumerate(zip(self.parts, self.names, strict=True)):
            payoff = part.payoff
            if number in regrets:
                parts.update({f"{name} {key}": value for key, value in regrets[number].items()})
                if seen is not None and number in seen:
                    own = self._regret_bounds(payoff, ledger, seen[number])
                    bounds.update({f"{name} {key}": value for key, value in zip(regrets[number], own, strict=False)})
            else:
                parts[name] = payoff.summary(ledger.part(number) / rounds)
                if not payoff.one_sided:
                    bounds[name] = promised / float(ledger.layout.scales[number])
            if payoff.context is not EVERYONE:
                found = ledger.group_guarantees(number, payoff.context.disjoint)
                groups[name] = dict(zip(payoff.context.labels, found, strict=True))
        return Guarantee(
            ledger.rounds,
            ledger.miscalibration,
            promised,
            ledger.held,
            parts,
            ledger.delay,
            groups,
            bounds,
            ledger.excess,
            empirical,
            promised + ledger.excess >= math.sqrt(ledger.bound),
        )

    def _regret_bounds(self, payoff: Payoff, ledger: Ledger, seen: Array) -> list[float]:
        """Bounds on the mean excess over each expert in its rounds; empty for groups."""
        assert isinstance(payoff, NoRegret)
        units = payoff.units_on(self.space)
        if units is None or self.discount < 1.0 or payoff.context is not EVERYONE:
            return []
        sums = ledger.promised * max(ledger.rounds, 1) / payoff.weight * units
        return [float(value) for value in np.outer(sums, 1.0 / np.maximum(seen, 1.0)).ravel()]

    def regret_names(self, payoff: NoRegret) -> list[str]:
        """Name for each score and expert, in the order of the ledger."""
        if len(self.experts) == 1:
            return [score.name for score in payoff.scores]
        return [f"{score.name} against {expert}" for score in payoff.scores for expert in self.experts]
