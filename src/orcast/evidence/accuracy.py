"""How inaccurate forecasts were, and whether that changed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orcast import metrics
from orcast.evidence.base import Evidence, Places, Vector, chunks, computed_once, outcomes_of
from orcast.evidence.statistics import SURE

# So many series are resampled as they are; fewer are cut into blocks of time.
PANEL = 20


@computed_once
def loss(evidence: Evidence, side: str = "before") -> Vector:
    """How inaccurate each forecast was: pinball loss, averaged over the levels, or Brier score.

    >>> loss(Evidence.of([[1.0, 3.0]], [2.0], levels=[0.25, 0.75]))
    array([0.25])
    """
    out = np.empty(evidence.rows)
    for chunk in chunks(evidence.rows):
        rows, y = evidence.side(side)[chunk], evidence.y[chunk]
        if evidence.kind == "quantiles":
            out[chunk] = metrics.pinball(rows, y, evidence.levels)
        else:
            out[chunk] = ((rows - outcomes_of(evidence, chunk)) ** 2).sum(axis=1)
    return out


def loss_name(evidence: Evidence) -> str:
    """What `loss` is called."""
    return "pinball loss" if evidence.kind == "quantiles" else "Brier score"


@dataclass(frozen=True)
class Difference:
    """How the mean loss changed: `change` is after - before, with a 95% interval from `low` to `high`.

    `relative` is the change as a part of the loss before, with its own interval.  The interval is nan where there is
    too little to resample; `units` of `unit` were resampled.

    >>> found = difference(Evidence.of([[0.0]] * 100, np.ones(100), after=[[0.5]] * 100, levels=[0.5]))
    >>> found.name, found.before, found.after, found.clear
    ('pinball loss', 0.5, 0.25, True)
    """

    name: str
    before: float
    after: float
    change: float
    low: float
    high: float
    relative: float
    relative_low: float
    relative_high: float
    unit: str
    units: int

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out no change at all."""
        return bool(self.low > 0.0 or self.high < 0.0)


@computed_once
def difference(evidence: Evidence, *, draws: int = 1000, seed: int = 0) -> Difference | None:
    """How the loss changed, with a 95% interval from a paired bootstrap; None if nothing was recalibrated.

    From 20 series on whole series are resampled, else blocks of time, the same in all series, of about
    2 T^(1/3) steps.

    Reference: Künsch (1989), "The jackknife and the bootstrap for general stationary observations", Annals of
    Statistics 17.

    >>> found = difference(Evidence.of([[0.0]] * 100, np.ones(100), after=[[0.5]] * 100, levels=[0.5]))
    >>> found.change, found.high, found.relative
    (-0.25, -0.25, -0.5)
    """
    if evidence.after is None:
        return None
    before, after = loss(evidence, "before"), loss(evidence, "after")
    unit, units, count = _units(evidence)
    nan = float("nan")
    if evidence.rows == 0:
        return Difference(loss_name(evidence), nan, nan, nan, nan, nan, nan, nan, nan, unit, 0)
    sums = np.stack([np.bincount(units, values, minlength=count) for values in (before, after, np.ones_like(before))])
    means = sums[:2].sum(axis=1) / evidence.rows
    change, relative = float(means[1] - means[0]), _ratio(means[1], means[0])
    ends = np.full(4, nan)
    if count >= 5:
        rng = np.random.default_rng(seed)
        drawn = np.empty((draws, 3))
        step = max(1, 4_000_000 // count)
        for start in range(0, draws, step):
            some = rng.integers(0, count, (min(step, draws - start), count))
            for k in range(3):
                drawn[start : start + step, k] = sums[k][some].sum(axis=1)
        tails = [(1.0 - SURE) / 2, (1.0 + SURE) / 2]
        ends[:2] = np.quantile((drawn[:, 1] - drawn[:, 0]) / drawn[:, 2], tails)
        if (drawn[:, 0] > 0.0).all():
            ends[2:] = np.quantile(drawn[:, 1] / drawn[:, 0] - 1.0, tails)
    low, high, relative_low, relative_high = ends.tolist()
    both = (float(means[0]), float(means[1]))
    ends_relative = (relative_low, relative_high)
    return Difference(loss_name(evidence), *both, change, low, high, relative, *ends_relative, unit, count)


def _ratio(after: float, before: float) -> float:
    return float(after / before - 1.0) if before > 0.0 else float("nan")


def _units(evidence: Evidence) -> tuple[str, Places, int]:
    """What is resampled: its name, which one each row belongs to, and how many there are."""
    if len(evidence.names) >= PANEL:
        # series without a row would be drawn as nothing
        there, units = np.unique(evidence.series, return_inverse=True)
        return "series", units, int(there.size)
    steps = steps_of(evidence)
    length = int(steps.max()) + 1 if steps.size else 1
    block = int(np.ceil(2.0 * length ** (1.0 / 3.0)))
    count = max(1, length // block)
    return "blocks of time", np.minimum(steps // block, count - 1), count


@computed_once
def steps_of(evidence: Evidence) -> Places:
    """When each row was, as a whole number: the rank of its time, or its place in its series."""
    if evidence.time is not None:
        return np.asarray(np.unique(evidence.time, return_inverse=True)[1], dtype=np.intp)
    order = np.argsort(evidence.series, kind="stable")
    counts = np.bincount(evidence.series, minlength=len(evidence.names))
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    steps = np.empty(evidence.rows, dtype=np.intp)
    steps[order] = np.arange(evidence.rows) - starts
    return steps
