cimport cython
from libc.math cimport fabs, isnan, sqrt
from orcast.committee.series cimport newest_of, ring_at, ring_put, season_before
from orcast.committee.spread cimport sort
from orcast.committee.state cimport (
    KNOWN_SIZE, NAN, OPTIONS, POOL_SIZE, RING, SEASON_COUNT, SERIES_SIZE, STREAM_SIZE, Constants, Known, Plan, Pool,
    Series, Stream, as_known, as_pool, as_series, as_stream
)
from orcast.committee.weights cimport add_regrets, fill_regrets, fill_weights, level_weight
from orcast.kernels.rows cimport Workspace, copy, cut, int64_t, mark, release, take

cdef double SIZE_RATE, LAG_RATE, MOST_LAG, MOST_SIZE, UNIT_SHARE, LEAST_SPREAD, LEAST_SHARE, LEAST_LOSS, MOST_ERROR, FAR, NEAR

cdef double working(Stream *stream, double value) noexcept nogil
cdef double original(Stream *stream, double value) noexcept nogil
cdef double on_atom(Stream *stream, double value) noexcept nogil
cdef void keep_atom(Stream *stream, double *q, Py_ssize_t k, Py_ssize_t i, double *out) noexcept nogil
cdef void count_atoms(Stream *stream, double y) noexcept nogil
cdef bint is_active(Plan plan, double *pool) noexcept nogil
cdef double smallest_spread(double median) noexcept nogil
cdef double cut_size(Known *known, double size) noexcept nogil
cdef void fill_known(
    Plan plan, double *row, double *series_row, double *pool, double time, double *q, Known *known, double *base
) noexcept nogil
cdef void fill_mix(Plan plan, double *row, double *pool, Known *known, double *memo, Workspace w) noexcept nogil
cdef void fill_offsets(Plan plan, double *row, double *pool, Known *known, double *memo) noexcept nogil
cdef void predict_members(
    Plan plan, double *row, double *pool, double *q, double *memo, double *out, Workspace w
) noexcept nogil
cdef double *shared_of(Plan plan, double *row, double *pool, Py_ssize_t m) noexcept nogil
@cython.locals(other=Py_ssize_t)
cdef void learn_offsets(Plan plan, double *row, double *pool, Known *known, double *memo, double y) noexcept nogil
cdef double pinball(Plan plan, double *q, double y) noexcept nogil
cdef double smallest_loss(Plan plan, double *q) noexcept nogil
cdef void learn_weights(Plan plan, double *row, double *pool, double *memo, double y, Workspace w) noexcept nogil
cdef void update_stream(
    Plan plan, double *row, double *pool, double *memo, double outcome, double late, Workspace w
) noexcept nogil
@cython.locals(shared="Pool *")
cdef void close_pool(Plan plan, double *pool) noexcept nogil
