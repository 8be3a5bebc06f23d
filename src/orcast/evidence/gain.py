"""Scores of the last known outcome, beside those of the forecasts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from orcast import metrics
from orcast.evidence.accuracy import loss
from orcast.evidence.base import Evidence, Places, Vector, chunks, computed_once
from orcast.evidence.statistics import ends_of, inside, main_share


@dataclass(frozen=True, eq=False)
class ReferenceScores:
    """The last known outcome with its own spread beside the forecasts, of which so many `rows` have one.

    The others count as they were given, so that all is said of the same outcomes.  `loss` and `coverage` (of the
    interval nearest to 90%, `share`) by "reference", "before" and "after".
    """

    rows: int
    loss: dict[str, float]
    share: float | None
    coverage: dict[str, float]


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
    return ReferenceScores(int(there.size), means, share, coverage)


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
