cimport cython
from orcast.kernels.rows cimport Workspace, copy, cut, mark, release, take
from orcast.kernels.state cimport POOL_COUNT, POOL_SUMS, TrackerOptions, TrackerUnit

cdef double LOSS_DISCOUNT, UNIT, FARTHEST, PER_SCALE

cdef struct QuantileTrackers:
    TrackerOptions *options
    Py_ssize_t count
    Py_ssize_t pooled
    double *levels
    Py_ssize_t size
    double low
    double high
    double *offsets
    double *seen
    TrackerUnit *unit

cdef inline QuantileTrackers quantile_trackers(
    TrackerOptions *options, Py_ssize_t count, Py_ssize_t pooled, double *levels, Py_ssize_t size, double low,
    double high, double *offsets, double *seen, TrackerUnit *unit
) noexcept nogil:
    cdef QuantileTrackers trackers
    trackers.options, trackers.count, trackers.pooled = options, count, pooled
    trackers.levels, trackers.size, trackers.low, trackers.high = levels, size, low, high
    trackers.offsets, trackers.seen, trackers.unit = offsets, seen, unit
    return trackers

cdef void offset_quantiles(
    double *q, Py_ssize_t n, double *offsets, double scale, double low, double high, double *out
) noexcept nogil
cdef void pinball_gradient(double *quantiles, Py_ssize_t n, double y, double *levels, double *out) noexcept nogil
cdef void offset_gradient(
    double *q, Py_ssize_t n, double *offsets, double scale, double low, double high, double y, double *levels,
    double *out, Workspace w
) noexcept nogil
cdef double pinball(double *q, Py_ssize_t n, double y, double *levels) noexcept nogil
cdef bint is_cold(QuantileTrackers trackers, Py_ssize_t heard) noexcept nogil
cdef Py_ssize_t first_awake(Py_ssize_t pooled, Py_ssize_t heard) noexcept nogil
cdef double *pool_offsets(QuantileTrackers trackers, double *signal, Py_ssize_t m) noexcept nogil
cdef void say(
    QuantileTrackers trackers, double *q, double *signal, Py_ssize_t heard, double expected_loss, double *out
) noexcept nogil
cdef void gradients(
    QuantileTrackers trackers, double *q, double *signal, Py_ssize_t heard, double expected_loss, double y,
    double *out, Py_ssize_t number, Workspace w
) noexcept nogil
cdef void learn(
    QuantileTrackers trackers, double *q, double *signal, Py_ssize_t heard, double expected_loss, double y,
    Workspace w
) noexcept nogil
cdef void step(
    QuantileTrackers trackers, double *q, double *signal, Py_ssize_t heard, double expected_loss, double y,
    double *own
) noexcept nogil
