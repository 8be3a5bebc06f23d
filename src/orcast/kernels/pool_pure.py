"""Stand-ins for the structs of `pool_state.pxd` and `quantile_trackers.pxd` in uncompiled kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

from orcast.kernels import records
from orcast.kernels.pure import at, struct, structs

# Counts of a pool. series: series with an outcome; batches: batches while there was one series; together: 1 if horizons
# of one series were pooled.
POOL_TALLY = ("series", "batches", "together")
# Sums over the streams of a pool (`orcast.kernels.spread`). chance: outcomes whose noise has the size of the blocks;
# excess: of the squared normal scores; errors: the same in standard errors; squares: of these.
POOL_SPREAD = ("streams", "outcomes", "chance", "excess", "errors", "squares")

as_tally = struct(POOL_TALLY)
as_pool_spreads, as_tracker_units = structs(POOL_SPREAD), structs(records.TRACKER_UNIT)
pool_spread_at = tracker_unit_at = at


class QuantileTrackers(NamedTuple):
    """Options and state of the quantile trackers of a stream."""

    options: Any
    count: int
    pooled: int
    levels: Any
    size: int
    low: float
    high: float
    offsets: Any
    seen: Any
    unit: Any


quantile_trackers = QuantileTrackers
