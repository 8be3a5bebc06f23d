from libc.math cimport fabs, isnan, sqrt
from orcast.committee.series cimport newest_of, ring_at, ring_put, season_before
from orcast.committee.spread cimport sort
from orcast.committee.state cimport (
    KNOWN_SIZE, NAN, OPTIONS, POOL_SIZE, RING, SEASON_COUNT, SERIES_SIZE, STREAM_SIZE, Known, Plan, Stream,
    as_known, as_pool, as_series, as_stream
)
from orcast.committee.weights cimport add_regrets, fill_regrets, fill_weights, level_weight
from orcast.kernels.rows cimport Row, Workspace, copy, cut, mark, release, take

cdef double SIZE_RATE, LAG_RATE, MOST_LAG, MOST_SIZE, UNIT_SHARE, LEAST_SPREAD, LEAST_SHARE, LEAST_LOSS, MOST_ERROR, FAR, NEAR

cdef double working(Stream *, double) noexcept nogil
cdef double original(Stream *, double) noexcept nogil
cdef double on_atom(Stream *, double) noexcept nogil
cdef void keep_atom(Stream *, Row, Py_ssize_t, Py_ssize_t, Row) noexcept nogil
cdef void count_atoms(Stream *, double) noexcept nogil
cdef double smallest_spread(double) noexcept nogil
cdef double cut_size(Known *, double) noexcept nogil
cdef void fill_known(Plan, Row, Row, Row, double, Row, Known *, Row) noexcept nogil
cdef void fill_mix(Plan, Row, Row, Known *, Row, Workspace) noexcept nogil
cdef void fill_offsets(Plan, Row, Row, Known *, Row) noexcept nogil
cdef void predict_members(Plan, Row, Row, Row, Row, Row, Workspace) noexcept nogil
cdef Row shared_of(Plan, Row, Row, Py_ssize_t) noexcept nogil
cdef void learn_offsets(Plan, Row, Row, Known *, Row, double) noexcept nogil
cdef double pinball(Plan, Row, double) noexcept nogil
cdef double smallest_loss(Plan, Row) noexcept nogil
cdef void learn_weights(Plan, Row, Row, Row, double, Workspace) noexcept nogil
cdef void update_stream(Plan, Row, Row, Row, double, double, Workspace) noexcept nogil
cdef void close_pool(Plan, Row) noexcept nogil
