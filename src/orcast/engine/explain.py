"""Explanation of a forecast: how much each payoff and group moved it, and which way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.engine.bound_payoff import BoundPayoff
from orcast.ledger import Ledger
from orcast.payoffs import CellGrid
from orcast.spaces import Binary, Box, Circle, Labels, OrderedSpace, Space

Array = NDArray[np.float64]


class PartTilt(NamedTuple):
    """Addition of one payoff, or one group of it, to log(p / x), cell by cell."""

    part: str
    group: str
    tilt: Array


@dataclass(frozen=True)
class Reason:
    """Share of a payoff or group in a forecast.

    `moved` is the change by it: of `mean` and `spread` (from the 10% to the 90% quantile) or `std`, or of the
    probability of each label.  `strength` is half the sum of |change in mass|, from 0 to 1.
    """

    part: str
    group: str
    strength: float
    moved: dict[Any, float]

    def __str__(self) -> str:
        who = self.part + (f" [{self.group}]" if self.group else "")
        shown = sorted(self.moved.items(), key=lambda item: -abs(item[1]))[:3]
        what = ", ".join(f"{key} {value:+.3g}" for key, value in shown)
        return f"{who}: moved {self.strength:.1%} of the mass ({what})"


@dataclass(frozen=True)
class Explanation:
    """Reasons, the strongest first; log(p / x) is a sum over them, and `learnt` is the part of the committee.

    >>> import orcast as oc
    >>> recal = oc.Recalibrator(oc.Interval(0, 1))
    >>> for y in [0.8, 0.9, 0.85, 0.8]:
    ...     p = recal.predict(oc.Normal(0.5, 0.1)); recal.update(y)
    >>> reasons = recal.predict(oc.Normal(0.5, 0.1)).explain().reasons
    >>> sorted(reason.part for reason in reasons)
    ['learnt', 'moment', 'quantile']
    """

    reasons: tuple[Reason, ...]

    def __iter__(self) -> Iterator[Reason]:
        return iter(self.reasons)

    def __len__(self) -> int:
        return len(self.reasons)

    def __str__(self) -> str:
        return "\n".join(map(str, self.reasons)) if self.reasons else "nothing moved this forecast"


def group_sums(
    bound_payoff: BoundPayoff, ledger: Ledger, context: Array, total: Array
) -> Iterator[tuple[int, str, Array]]:
    """Number of the part, label of the group, and weighted cumulative payoff, for each group of a round."""
    layout = ledger.layout
    for number, (start, size, groups, _, at, one_sided) in enumerate(layout.part_table.tolist()):
        for group in range(groups):
            if context[at + group] != 0.0:
                s = total[start + group * size : start + (group + 1) * size]
                s = layout.scales[number] * float(context[at + group]) * ledger.discount * s
                label = bound_payoff.parts[number].context.labels[group] if groups > 1 else ""
                yield number, label, np.maximum(s, 0.0) if one_sided else s


def explanation(space: Space, played: tuple[CellGrid, Array], pieces: Iterable[PartTilt]) -> Explanation:
    """Leave each piece out in turn; what the pieces do not explain was learnt before."""
    cell_grid, p = played
    reasons = []
    rest = np.log(np.maximum(p, 1e-300))
    for piece in pieces:
        rest = rest - piece.tilt
        reasons.append(_reason(space, cell_grid, p, piece))
    expert = cell_grid.expert if cell_grid.expert.size else np.full(p.size, 1.0 / p.size)
    learnt = rest - np.log(np.maximum(expert, 1e-300))
    learnt = np.clip(learnt - float(p @ learnt), -700.0, 700.0)
    reasons.append(_reason(space, cell_grid, p, PartTilt("learnt", "", learnt)))
    told = [reason for reason in reasons if reason.strength > 1e-6]
    return Explanation(tuple(sorted(told, key=lambda reason: -reason.strength)))


def _reason(space: Space, cell_grid: CellGrid, p: Array, piece: PartTilt) -> Reason:
    log_without = np.log(np.maximum(p, 1e-300)) - (piece.tilt - float(p @ piece.tilt))
    without = np.exp(log_without - log_without.max())
    without /= without.sum()
    return Reason(
        piece.part,
        piece.group,
        0.5 * float(np.abs(p - without).sum()),
        _difference(space, cell_grid, p, without),
    )


def _difference(space: Space, cell_grid: CellGrid, p: Array, without: Array) -> dict[Any, float]:
    if isinstance(space, OrderedSpace):
        middle = 0.5 * (cell_grid.left + cell_grid.right)
        a, b = cell_grid.forecast(p), cell_grid.forecast(without)
        spread = np.diff(a.quantile([0.1, 0.9])) - np.diff(b.quantile([0.1, 0.9]))
        return {"mean": float((p - without) @ middle), "spread": float(spread[0])}
    if isinstance(space, Binary):
        return {"probability": float(p[1] - without[1])}
    if isinstance(space, Labels):
        return {label: float(change) for label, change in zip(space.points, p - without, strict=True)}
    if isinstance(space, (Circle, Box)):
        a, b = cell_grid.forecast(p), cell_grid.forecast(without)
        if isinstance(space, Circle):
            half = 0.5 * space.period
            turn = (a.mean() - b.mean() + half) % space.period - half
            return {"mean": float(turn), "std": float(a.std() - b.std())}
        moved = {f"mean[{i}]": float(change) for i, change in enumerate(a.mean() - b.mean())}
        return moved | {f"std[{i}]": float(change) for i, change in enumerate(a.std() - b.std())}
    k = int(np.abs(p - without).argmax())
    return {str(space.value(k)): float((p - without)[k])}  # type: ignore[attr-defined]
