"""How inaccurate forecasts were, and whether that changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orcast import metrics
from orcast.evidence.base import Evidence, Places, Vector, chunks, computed_once, outcomes_of
from orcast.evidence.blocks import Blocks, blocks_of, reach_of, steps_of, student, times_of, variance_of_sums
from orcast.evidence.statistics import SURE

# So many series are resampled too, beside blocks of time.
PANEL = 20
# Fewer blocks or series than this are not resampled.
LEAST = 5


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

    Blocks of time are resampled, the same in all series and at all horizons, of about 2 T^(1/3) steps, and of more
    where forecasts overlap or losses are alike from time to time.  From 20 series on whole series are resampled too,
    and the wider interval is the one given: what changed for few series may not change for others.

    Reference: Künsch (1989), "The jackknife and the bootstrap for general stationary observations", Annals of
    Statistics 17.

    >>> found = difference(Evidence.of([[0.0]] * 100, np.ones(100), after=[[0.5]] * 100, levels=[0.5]))
    >>> found.change, found.high, found.relative
    (-0.25, -0.25, -0.5)
    """
    if evidence.after is None:
        return None
    nan = float("nan")
    if evidence.rows == 0:
        return Difference(loss_name(evidence), nan, nan, nan, nan, nan, nan, nan, nan, "blocks of time", 0)
    before, after = float(loss(evidence, "before").mean()), float(loss(evidence, "after").mean())
    found = [
        (unit, blocks.count, resample(loss_sums(evidence, blocks), blocks.alike, draws=draws, seed=seed))
        for unit, blocks in _units(evidence).items()
    ]
    unit, count, ends = max(found, key=lambda each: np.nan_to_num(each[2].high[0] - each[2].low[0], nan=-1.0))
    return Difference(
        name=loss_name(evidence),
        before=before,
        after=after,
        change=after - before,
        low=float(ends.low[0]),
        high=float(ends.high[0]),
        relative=after / before - 1.0 if before > 0.0 else nan,
        relative_low=float(ends.relative_low[0]),
        relative_high=float(ends.relative_high[0]),
        unit=unit,
        units=count,
    )


@computed_once
def recent_difference(evidence: Evidence) -> Difference | None:
    """How the loss changed in the last quarter of the time, which the mean over all of it may hide.

    >>> after = [[0.8]] * 80 + [[-0.8]] * 20
    >>> evidence = Evidence.of([[0.0]] * 100, np.ones(100), after=after, levels=[0.5])
    >>> difference(evidence).change < 0.0, recent_difference(evidence).change > 0.0
    (True, True)
    """
    if evidence.after is None:
        return None
    last = steps_of(evidence) >= times_of(evidence) - times_of(evidence) // 4
    columns = ("before", "after", "y", "series", "time", "low", "high", "horizon")
    own: dict[str, Any] = {name: each[last] for name in columns if (each := getattr(evidence, name)) is not None}
    return difference(replace(evidence, **own, holds=None, promised=None, miscalibration=None, reference=None, by=()))


def _units(evidence: Evidence) -> dict[str, Blocks]:
    """What is resampled, by its name."""
    units = {"blocks of time": loss_blocks(evidence)}
    if len(evidence.names) >= PANEL:
        # series without a row would be drawn as nothing
        there, places = np.unique(evidence.series, return_inverse=True)
        units["series"] = Blocks(places, int(there.size), False)
    return units


@computed_once
def loss_blocks(evidence: Evidence) -> Blocks:
    """Blocks of time for losses and their differences."""
    signals = [loss(evidence, side) for side in evidence.sides[:1]]
    if evidence.after is not None:
        signals = [loss(evidence, "after") - loss(evidence, "before")]
    return blocks_of(evidence, reach_of(evidence, signals), int(np.ceil(2.0 * times_of(evidence) ** (1.0 / 3.0))))


def loss_sums(evidence: Evidence, blocks: Blocks, codes: Places | None = None, groups: int = 1) -> Vector:
    """Sums of the losses before and after and of the rows: blocks x 3 x groups."""
    places = blocks.of_row * groups
    there: Places | slice = slice(None)
    if codes is not None:
        there = np.flatnonzero(codes >= 0)
        places = places[there] + codes[there]
    columns = (loss(evidence, "before")[there], loss(evidence, "after")[there], np.ones(places.size))
    sums = [np.bincount(places, values, minlength=blocks.count * groups) for values in columns]
    return np.asarray(sums, dtype=np.float64).reshape(3, blocks.count, groups).transpose(1, 0, 2)


@dataclass(frozen=True, eq=False)
class Ends:
    """Ends of the 95% intervals of a change and of a relative one, and the spread of that, for each group."""

    low: Vector
    high: Vector
    relative_low: Vector
    relative_high: Vector
    spread: Vector


def resample(sums: Vector, alike: bool, *, draws: int = 1000, seed: int = 0) -> Ends:
    """Intervals from drawing blocks with replacement, the same for all groups; nan where there are too few of them.

    They are widened by what few blocks hide (Student), and by how much more blocks of twice the length would vary.
    """
    count, _, groups = sums.shape
    if count < LEAST:
        return Ends(*np.full((5, groups), np.nan))
    rng = np.random.default_rng(seed)
    flat = np.ascontiguousarray(sums.reshape(count, -1))
    drawn = np.empty((draws, flat.shape[1]))
    step = max(1, 4_000_000 // count)
    for start in range(0, draws, step):
        many = min(step, draws - start)
        picks = rng.integers(0, count, (many, count)) + np.arange(many)[:, None] * count
        drawn[start : start + many] = np.bincount(picks.ravel(), minlength=many * count).reshape(many, count) @ flat
    before, after, rows = drawn.reshape(draws, 3, groups).transpose(1, 0, 2)
    whole = sums.sum(axis=0)
    widen = _widen(sums, alike)
    with np.errstate(invalid="ignore", divide="ignore"):
        change = (after - before) / rows
        low, high = _ends(change, (whole[1] - whole[0]) / whole[2], widen)
        relative = np.where(before > 0.0, after / before - 1.0, np.nan)
        relative_low, relative_high = _ends(relative, whole[1] / whole[0] - 1.0, widen)
        spread = relative.std(axis=0) * widen
    return Ends(low, high, relative_low, relative_high, spread)


def _ends(drawn: Vector, found: Vector, widen: Vector) -> Vector:
    tails = np.quantile(drawn, [(1.0 - SURE) / 2.0, (1.0 + SURE) / 2.0], axis=0)
    return np.asarray(found + (tails - found) * widen)


def _widen(sums: Vector, alike: bool) -> Vector:
    """How much wider the intervals are than what was drawn says, for each group."""
    whole = sums.sum(axis=0)
    gaps = sums[:, 1] - sums[:, 0] - sums[:, 2] * (whole[1] - whole[0]) / np.maximum(whole[2], 1.0)
    there = np.maximum((sums[:, 2] > 0.0).sum(axis=0), 2)
    once, more = variance_of_sums(gaps, False), variance_of_sums(gaps, alike)
    longer = np.where(once > 0.0, more / np.where(once > 0.0, once, 1.0), 1.0)
    few = np.array([student(int(many), SURE) * np.sqrt(many / (many - 1.0)) for many in there])
    return np.asarray(np.sqrt(longer) * few)
