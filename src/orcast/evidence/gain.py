"""Scores of the last known outcome, beside those of the forecasts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from orcast import metrics
from orcast.evidence.accuracy import loss, loss_sums, resample
from orcast.evidence.base import Evidence, Places, Vector, chunks, computed_once
from orcast.evidence.blocks import blocks_of, reach_of, times_of
from orcast.evidence.statistics import ends_of, inside, main_share


@dataclass(frozen=True, eq=False)
class ReferenceScores:
    """The last known outcome with its own spread beside the forecasts, of which so many `rows` have one.

    The others count as they were given, so that all is said of the same outcomes.  `loss` and `coverage` (of the
    interval nearest to 90%, `share`) by "reference", "before" and "after"; `relative` is how the loss of the last of
    these differs from that of the reference, as a part of it, with a 95% interval.

    >>> from orcast.evidence import Reference
    >>> reference = Reference(np.ones(10), np.full(10, 0.5))
    >>> found = reference_scores(Evidence.of([[0.0, 4.0]] * 10, np.ones(10), levels=[0.05, 0.95], reference=reference))
    >>> found.coverage, found.relative > 0
    ({'reference': 1.0, 'before': 1.0}, True)
    """

    rows: int
    loss: dict[str, float]
    share: float | None
    coverage: dict[str, float]
    relative: float
    low: float
    high: float


@computed_once
def reference_scores(evidence: Evidence) -> ReferenceScores | None:
    """What the last known outcome says at the same information; None if that is not known for half of the rows.

    >>> from orcast.evidence import Reference
    >>> walk = np.cumsum(np.random.default_rng(0).normal(size=300))
    >>> reference = Reference(np.append(np.nan, walk[:-1]), np.append(np.nan, np.ones(299)))
    >>> found = reference_scores(Evidence.of([[-9.0, 9.0]] * 300, walk, levels=[0.05, 0.95], reference=reference))
    >>> found.rows, 0.85 < found.coverage["reference"] < 0.95
    (299, True)
    """
    if evidence.reference is None or evidence.kind != "quantiles":
        return None
    there = np.flatnonzero(np.isfinite(evidence.reference.spread) & np.isfinite(evidence.reference.last))
    if 2 * there.size < max(evidence.rows, 1):
        return None
    share = main_share(evidence)
    own = loss(evidence, "before").copy()
    covered = None if share is None else inside(evidence, share, "before").astype(np.float64)
    losses, hits = _reference_losses(evidence, there, share)
    own[there] = losses
    means = {"reference": float(own.mean())} | {side: float(loss(evidence, side).mean()) for side in evidence.sides}
    coverage: dict[str, float] = {}
    if share is not None and covered is not None:
        covered[there] = hits
        coverage = {"reference": float(covered.mean())}
        coverage |= {side: float(inside(evidence, share, side).mean()) for side in evidence.sides}
    last = loss(evidence, evidence.sides[-1])
    far = reach_of(evidence, [last - own])
    blocks = blocks_of(evidence, far, int(np.ceil(2.0 * times_of(evidence) ** (1.0 / 3.0))))
    ends = resample(loss_sums(evidence, blocks, losses=(own, last)), blocks.alike)
    relative = means[evidence.sides[-1]] / means["reference"] - 1.0 if means["reference"] > 0.0 else float("nan")
    return ReferenceScores(
        int(there.size), means, share, coverage, relative, float(ends.relative_low[0]), float(ends.relative_high[0])
    )


def _reference_losses(evidence: Evidence, there: Places, share: float | None) -> tuple[Vector, Vector]:
    """The pinball loss of the last known outcome, and whether the outcome was in its interval, for some rows."""
    assert evidence.reference is not None
    losses, covered = np.empty(there.size), np.zeros(there.size)
    ends = None if share is None else ends_of(evidence, share)
    steps = ndtri(evidence.levels)
    for chunk in chunks(there.size):
        rows = there[chunk]
        q = evidence.reference.last[rows, None] + evidence.reference.spread[rows, None] * steps
        np.clip(q, evidence.low[rows, None], evidence.high[rows, None], out=q)
        y = evidence.y[rows]
        losses[chunk] = metrics.pinball(q, y, evidence.levels)
        if ends is not None:
            covered[chunk] = (q[:, ends[0]] <= y) & (y <= q[:, ends[1]])
    return losses, covered
