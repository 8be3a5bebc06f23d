"""State of a pool: its rules, its memory, its streams and its pending forecasts.

Each object owns one row of numbers, as those of `orcast.kernels.state` do.
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

import numpy as np

from orcast.kernels import records
from orcast.kernels import state as states

if not cython.compiled:
    from orcast.kernels.pool_pure import as_pool_spreads, as_tally, as_tracker_units
    from orcast.kernels.pure import as_evidence, as_tracker_options, evidence_at
    from orcast.kernels.rows import cut, cut_whole, numbers_of, whole_of
    from orcast.kernels.state import POOL_SUMS

# Numbers in the structs PoolTally and PoolSpread, and in a struct of evidence.
TALLY_NUMBERS, SPREAD_NUMBERS, EVIDENCE_NUMBERS = 3, 6, len(records.EVIDENCE)
# Names of the first numbers of a signal, as Python reads them.
SIGNAL = ("count", "evidence", "excess")
SIGNAL_SUMS = len(SIGNAL)


class PoolRules:
    """Constants of a pool: options of its trackers, levels and their normal scores."""

    def __init__(self, trackers, levels, scores):
        self.given = (trackers, levels, scores)
        arrays = [np.ascontiguousarray(array, dtype=np.float64) for array in self.given]
        self.row = np.concatenate([array.ravel() for array in arrays])
        self.tracker_count, self.level_count = len(trackers), len(levels)
        self.size = self.tracker_count * self.level_count
        self.signal_size = POOL_SUMS + 2 * self.size + 1
        row, at = numbers_of(self.row), arrays[0].size
        self.trackers = as_tracker_options(cut(row, 0, at))
        self.levels = cut(row, at, self.level_count)
        self.scores = cut(row, at + self.level_count, self.level_count)

    def __reduce__(self):
        return PoolRules, self.given


def memory_shapes(rules, horizons, streams):
    """Shapes of the arrays of a pool's memory, by horizon and by stream."""
    trackers, levels, size = rules.tracker_count, rules.level_count, rules.size
    return {
        "tally": (TALLY_NUMBERS,),
        "common": (SIGNAL_SUMS + size,),
        "common_evidence": (EVIDENCE_NUMBERS,),
        "own": (horizons, SIGNAL_SUMS + size),
        "evidence": (horizons, EVIDENCE_NUMBERS),
        "batches": (horizons,),
        "members": (horizons,),
        "totals": (horizons, size),
        "offsets": (streams, trackers, levels),
        "seen": (streams, SIGNAL_SUMS + size),
        "unit": (streams, len(records.TRACKER_UNIT)),
        "ledger": (streams, 2, levels + 1),
        "beyond": (horizons,),
        "spreads": (horizons, SPREAD_NUMBERS),
        "errors": (streams, 2),
    }


class PoolMemory:
    """Numbers that a pool carries from batch to batch, by horizon and by stream.

    tally: counts of the pool; common: signal that all horizons share, from the batches while there was one series; own:
    signal of each horizon, from the other batches; batches: of each horizon; members: streams with an outcome; totals:
    sums of their offsets, in units of the usual loss; offsets, seen, unit, ledger: of each stream, as in the memory of
    a recalibrator; beyond: sum of the miscalibration of the experts; errors: of point forecasts, the sum of the
    absolute ones and their number.
    """

    def __init__(self, rules: PoolRules, horizons: int, streams: int):
        self.rules, self.horizons, self.streams = rules, horizons, streams
        self.places, length = states.places(memory_shapes(rules, horizons, streams))
        self.row = np.zeros(length)
        row = numbers_of(self.row)
        at = {name: place[0] for name, place in self.places.items()}
        size, signal, levels = rules.size, POOL_SUMS + rules.size, rules.level_count
        self.tally = as_tally(cut(row, at["tally"], TALLY_NUMBERS))
        self.common = cut(row, at["common"], signal)
        self.common_evidence = evidence_at(as_evidence(cut(row, at["common_evidence"], 4)), 0)
        self.own = cut(row, at["own"], horizons * signal)
        self.evidence = as_evidence(cut(row, at["evidence"], horizons * 4))
        self.batches = cut(row, at["batches"], horizons)
        self.members = cut(row, at["members"], horizons)
        self.totals = cut(row, at["totals"], horizons * size)
        self.offsets = cut(row, at["offsets"], streams * size)
        self.seen = cut(row, at["seen"], streams * signal)
        self.unit = as_tracker_units(cut(row, at["unit"], streams * 2))
        self.ledger = cut(row, at["ledger"], streams * 2 * (levels + 1))
        self.beyond = cut(row, at["beyond"], horizons)
        self.spreads = as_pool_spreads(cut(row, at["spreads"], horizons * 6))
        self.errors = cut(row, at["errors"], streams * 2)

    def view(self, name):
        """Array of the memory, as a view of its row."""
        return states.view(self.row, *self.places[name])

    def views(self):
        """All arrays of the memory by name."""
        return {name: states.view(self.row, *place) for name, place in self.places.items()}

    def alone(self):
        """Whether only one series has outcomes."""
        return self.tally.series <= 1.0

    def __reduce__(self):
        return restored_memory, (self.rules, self.horizons, self.streams, self.row)


def restored_memory(rules, horizons, streams, row):
    """Memory from its row; for pickling."""
    memory = PoolMemory(rules, horizons, streams)
    memory.row[:] = row
    return memory


class PoolStreams:
    """Streams of a pool in the order of their names: horizon, series, bounds of the outcome, range of quantiles.

    `begun` is 1 for each series with an outcome.
    """

    def __init__(self, horizon, series, begun, bounds, reach):
        self.given = (horizon, series, begun, bounds, reach)
        self.count = len(horizon)
        self.whole = np.concatenate((horizon, series)).astype(np.int64)
        self.row = np.concatenate((begun, np.ravel(bounds), np.ravel(reach))).astype(np.float64)
        whole, row = whole_of(self.whole), numbers_of(self.row)
        self.horizon, self.series = cut_whole(whole, 0, self.count), cut_whole(whole, self.count, self.count)
        at = len(begun)
        self.begun = cut(row, 0, at)
        self.bounds = cut(row, at, 2 * self.count)
        self.reach = cut(row, at + 2 * self.count, 2 * self.count)

    @property
    def horizons(self):
        """Horizon of each stream, as an array."""
        return self.whole[: self.count]


class PoolRows:
    """Outstanding forecasts of a pool: quantiles of the expert, mean quantiles of the trackers, number of batches."""

    def __init__(self, count: int, levels: int):
        self.count, self.levels = count, levels
        self.places, length = states.places({"q": (count, levels), "blends": (count, levels), "batch": (count,)})
        self.row = np.zeros(length)
        row = numbers_of(self.row)
        self.q, self.blends = cut(row, 0, count * levels), cut(row, count * levels, count * levels)
        self.batch = cut(row, 2 * count * levels, count)

    def view(self, name):
        """Array of the rows, as a view of their numbers."""
        return states.view(self.row, *self.places[name])

    def views(self):
        """All arrays of the rows by name."""
        return {name: states.view(self.row, *place) for name, place in self.places.items()}

    def taken(self, which):
        """Copy of some rows, given by their places or a mask."""
        return rows_with(**{name: array[which] for name, array in self.views().items()})

    def grown(self, more):
        """Copy with empty rows at the end."""
        rows = PoolRows(self.count + more, self.levels)
        for name, array in self.views().items():
            rows.view(name)[: self.count] = array
        return rows

    def __reduce__(self):
        return restored_rows, (self.count, self.levels, self.row)


def rows_with(q, blends, batch):
    """Rows with given arrays."""
    rows = PoolRows(*q.shape)
    for name, array in {"q": q, "blends": blends, "batch": batch}.items():
        rows.view(name)[...] = array
    return rows


def restored_rows(count, levels, row):
    """Rows from their numbers; for pickling."""
    rows = PoolRows(count, levels)
    rows.row[:] = row
    return rows
