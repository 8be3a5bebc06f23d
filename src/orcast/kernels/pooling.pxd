cimport cython
from libc.math cimport fabs
from orcast.kernels.evidence cimport add_evidence, expert_beyond_chance, learn_ledger, standard_errors
from orcast.kernels.pool_state cimport (
    PoolMemory,
    PoolRows,
    PoolRules,
    PoolSpread,
    PoolStreams,
    as_pool_spreads,
    pool_spread_at,
    tracker_unit_at,
)
from orcast.kernels.quantile_function cimport corrected_on, outer_slopes_on, quantile_on
from orcast.kernels.quantile_trackers cimport (
    PER_SCALE,
    QuantileTrackers,
    gradients,
    pinball,
    quantile_trackers,
    say,
    step,
)
from orcast.kernels.rows cimport (
    Workspace,
    cut,
    int64_t,
    mark,
    numbers_of,
    readable_of,
    release,
    take,
    whole_of,
    workspace,
)
from orcast.kernels.spread cimport add_spread, stretch_of, usual_excess
from orcast.kernels.state cimport POOL_COUNT, POOL_EVIDENCE, POOL_EXCESS, POOL_SUMS, as_evidence, evidence_at

cdef double PER_ABSOLUTE, CROSS, SMALLEST

cdef QuantileTrackers trackers_of(PoolRules rules, PoolMemory memory, PoolStreams streams, Py_ssize_t s) noexcept nogil
cdef double expected_loss(double *q, Py_ssize_t n, double *scores) noexcept nogil
cdef bint is_alone(PoolMemory memory) noexcept nogil
cdef double streams_with_outcome(PoolMemory memory) noexcept nogil
cdef bint is_heard(PoolMemory memory, Py_ssize_t h) noexcept nogil
cdef void fill_sums(PoolMemory memory, Py_ssize_t h, double *out) noexcept nogil
@cython.locals(fresh=bint)
cdef void fill_signal(PoolMemory memory, Py_ssize_t h, double *out, Workspace w) noexcept nogil
cdef void fill_signals(PoolMemory memory, double *out, Workspace w) noexcept nogil
cdef void read_point(
    PoolRules rules, PoolMemory memory, PoolStreams streams, Py_ssize_t s, double point, double spread, double *q
) noexcept nogil
cdef void issue_one(
    PoolRules rules, PoolMemory memory, PoolStreams streams, Py_ssize_t s, Py_ssize_t place, double *signals,
    PoolRows rows, Workspace w
) noexcept nogil
cdef double usual_loss(PoolMemory memory, Py_ssize_t s, double otherwise) noexcept nogil
cdef double gain_of(
    PoolRules rules, PoolMemory memory, PoolStreams streams, Py_ssize_t s, double *q, double *signal, Py_ssize_t heard,
    double expected, double *blend, double y, Workspace w
) noexcept nogil
cdef void count_streams(PoolMemory memory, PoolStreams streams, int64_t *which, Py_ssize_t count) noexcept nogil
cdef void add_offsets(PoolMemory memory, Py_ssize_t s, Py_ssize_t h, double sign) noexcept nogil
cdef void add_faults(PoolRules rules, PoolMemory memory, Py_ssize_t s, Py_ssize_t h, double sign) noexcept nogil
cdef void copy_evidence(PoolMemory memory, Py_ssize_t h) noexcept nogil
cdef void add_batch(
    PoolMemory memory, double *counts, double *sums, double *gains, double *lags, Workspace w
) noexcept nogil
cdef void settle_batch(
    PoolRules rules, PoolMemory memory, PoolStreams streams, int64_t *which, int64_t *places, double *values,
    Py_ssize_t count, double *points, Py_ssize_t point_count, PoolRows rows, double *signals, double *expected,
    double *gradient, Workspace w
) noexcept nogil
cdef void settle_one(
    PoolRules rules, PoolMemory memory, PoolStreams streams, Py_ssize_t s, Py_ssize_t place, double y, PoolRows rows,
    double *signal, double expected, double *gradient, Workspace w
) noexcept nogil

cpdef object hear(PoolMemory memory, object horizons, object out, object heard)
cpdef double add_gain(object evidence, double gain, double pending) except? -1.0
cpdef double add_game(object spreads, object ledger, object levels, object scores, double count) except? -1.0
cpdef object issue(
    PoolRules rules, PoolMemory memory, PoolStreams streams, object which, object places, object points, object spreads,
    PoolRows rows
)
cpdef object settle(
    PoolRules rules, PoolMemory memory, PoolStreams streams, object which, object places, object values, object points,
    PoolRows rows
)
