cimport cython
from libc.math cimport fabs, isnan, sqrt
from orcast.committee.series cimport newest_of, ring_at, ring_put, season_before
from orcast.committee.spread cimport sort
from orcast.committee.state cimport (
    KNOWN_SIZE, NAN, OPTIONS, POOL_SIZE, RING, SEASON_COUNT, SERIES_SIZE, STREAM_SIZE, Known, Plan, Pool, Stream,
    as_known, as_pool, as_series, as_stream
)
from orcast.committee.weights cimport add_regrets, fill_regrets, fill_weights, level_weight
from orcast.kernels.rows cimport Row, Workspace, copy, cut, mark, release, take

cdef double SIZE_RATE, LAG_RATE, MOST_LAG, MOST_SIZE, UNIT_SHARE, LEAST_SPREAD, LEAST_SHARE, LEAST_LOSS, MOST_ERROR, FAR, NEAR

cdef double working(Stream *stream, double value) noexcept nogil
cdef double original(Stream *stream, double value) noexcept nogil
cdef double on_atom(Stream *stream, double value) noexcept nogil
cdef void keep_atom(Stream *stream, Row q, Py_ssize_t k, Py_ssize_t i, Row out) noexcept nogil
cdef void count_atoms(Stream *stream, double y) noexcept nogil
cdef bint is_active(Plan plan, Row pool) noexcept nogil
cdef double smallest_spread(double median) noexcept nogil
cdef double cut_size(Known *known, double size) noexcept nogil
cdef void fill_known(
    Plan plan, Row row, Row series_row, Row pool, double time, Row q, Known *known, Row base
) noexcept nogil
cdef void fill_mix(Plan plan, Row row, Row pool, Known *known, Row memo, Workspace w) noexcept nogil
cdef void fill_offsets(Plan plan, Row row, Row pool, Known *known, Row memo) noexcept nogil
cdef void predict_members(Plan plan, Row row, Row pool, Row q, Row memo, Row out, Workspace w) noexcept nogil
cdef Row shared_of(Plan plan, Row row, Row pool, Py_ssize_t m) noexcept nogil
cdef void learn_offsets(Plan plan, Row row, Row pool, Known *known, Row memo, double y) noexcept nogil
cdef double pinball(Plan plan, Row q, double y) noexcept nogil
cdef double smallest_loss(Plan plan, Row q) noexcept nogil
cdef void learn_weights(Plan plan, Row row, Row pool, Row memo, double y, Workspace w) noexcept nogil
cdef void update_stream(Plan plan, Row row, Row pool, Row memo, double outcome, double late, Workspace w) noexcept nogil
@cython.locals(shared="Pool *")
cdef void close_pool(Plan plan, Row pool) noexcept nogil
