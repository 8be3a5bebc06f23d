cimport cython
from orcast.kernels.rows cimport cut, cut_whole, int64_t, numbers_of, whole_of
from orcast.kernels.state cimport (
    POOL_SUMS,
    Evidence,
    TrackerOptions,
    TrackerUnit,
    as_evidence,
    as_tracker_options,
    evidence_at,
)

cdef struct PoolTally:
    double series, batches, together
cdef struct PoolSpread:
    double streams, outcomes, chance, excess, errors, squares

cdef inline PoolTally *as_tally(double *row) noexcept nogil:
    return <PoolTally *> row
cdef inline PoolSpread *as_pool_spreads(double *row) noexcept nogil:
    return <PoolSpread *> row
cdef inline PoolSpread *pool_spread_at(PoolSpread *items, Py_ssize_t i) noexcept nogil:
    return items + i
cdef inline TrackerUnit *as_tracker_units(double *row) noexcept nogil:
    return <TrackerUnit *> row
cdef inline TrackerUnit *tracker_unit_at(TrackerUnit *items, Py_ssize_t i) noexcept nogil:
    return items + i

cdef class PoolRules:
    cdef readonly object given, row
    cdef TrackerOptions *trackers
    cdef double *levels
    cdef double *scores
    cdef readonly Py_ssize_t tracker_count, level_count, size, signal_size

cdef class PoolMemory:
    cdef readonly PoolRules rules
    cdef readonly Py_ssize_t horizons, streams
    cdef readonly dict places
    cdef readonly object row
    cdef PoolTally *tally
    cdef double *common
    cdef Evidence *common_evidence
    cdef double *own
    cdef Evidence *evidence
    cdef double *batches
    cdef double *members
    cdef double *totals
    cdef double *offsets
    cdef double *seen
    cdef TrackerUnit *unit
    cdef double *ledger
    cdef double *beyond
    cdef PoolSpread *spreads
    cdef double *errors
    cpdef bint alone(self)
    cpdef object view(self, str name)
    cpdef dict views(self)

cdef class PoolStreams:
    cdef readonly Py_ssize_t count
    cdef readonly object given, row, whole
    cdef int64_t *horizon
    cdef int64_t *series
    cdef double *begun
    cdef double *bounds
    cdef double *reach

cdef class PoolRows:
    cdef readonly Py_ssize_t count, levels
    cdef readonly dict places
    cdef readonly object row
    cdef double *q
    cdef double *blends
    cdef double *batch
    cpdef object view(self, str name)
    cpdef dict views(self)
    cpdef PoolRows taken(self, object which)
    cpdef PoolRows grown(self, Py_ssize_t more)
