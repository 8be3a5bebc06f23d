cimport cython
from orcast.kernels.rows cimport Row, WholeRow, Workspace, cut, cut_whole, numbers_of, whole_of

cdef double NAN, INF, FARTHEST, EMPTY
cdef Py_ssize_t RING, KNOTS, SEASON_COUNT, SHORT_SEASONS, OPTIONS
cdef Py_ssize_t KNOWN_SIZE, STREAM_SIZE, SERIES_SIZE, POOL_SIZE
cdef enum:
    MOST_MEMBERS = 8

cdef struct Constants:
    double prior_base, discount, fastest, clip, probation, reach, reach_growth, reach_most, ridge, pool_ridge
    double trace, spread_0, spread_1, spread_2, shape, spread_forget, pool_forget, pool_share, pooled, own
    double offset, offset_pool, offset_half, offset_shift, offset_own, memory_lag
cdef struct Known:
    double serial, time, median, spread, unit, lag, evidence, reach, active, last, trust, y_0, y_1, y_2, mean, season
    double season_now, long_season, long_now, below, above, before, error_0, error_1, error_short
    double error_season, error_long, common, common_short
cdef struct Stream:
    double outcomes, scale, loss, lag, issued, newest, error_0, error_1, error_2, low, high, root, median
    double target, median_before, target_before, mix_scale, move, at_low, gap_low, at_high, gap_high, error_sum, error_count
cdef struct Series:
    double outcomes, mean, size, power, newest, y_0, y_1, y_2, short_season, long_season, presumed_short, presumed_long
cdef struct Pool:
    double steps, streams, lag, error, count, error_sum

cdef inline Constants *as_constants(Row row) noexcept nogil: return <Constants *> row
cdef inline Known *as_known(Row row) noexcept nogil: return <Known *> row
cdef inline Stream *as_stream(Row row) noexcept nogil: return <Stream *> row
cdef inline Series *as_series(Row row) noexcept nogil: return <Series *> row
cdef inline Pool *as_pool(Row row) noexcept nogil: return <Pool *> row

ctypedef void (*predict_t)(Plan, Row, Known *, Row, Row, Row, Row, Row, Workspace) noexcept nogil
ctypedef void (*update_t)(Plan, Row, Known *, Row, Row, Row, Row, double, double) noexcept nogil
ctypedef void (*close_t)(Plan plan, Row options, Row shared, double weight, double lag) noexcept nogil

cdef class Member:
    cdef readonly object name, state, memo, shared, options, share
    cdef predict_t predict
    cdef update_t update
    cdef close_t close

cdef class Plan:
    cdef readonly tuple members
    cdef readonly object row, whole
    cdef public object source
    cdef readonly bint pooled
    cdef readonly Py_ssize_t level_count, member_count, alone_count, knot_count, middle, series_size, stream_size, memo_size, pool_size
    cdef readonly Py_ssize_t weights_at, offsets_at, members_at, memos_at, quantiles_at
    cdef readonly Py_ssize_t pool_offsets_at, pool_sums_at, pool_members_at
    cdef Row levels, scores, knot_share, knot_full, shape, density, log_prior, log_prior_alone, options
    cdef Constants *constants
    cdef WholeRow knot_at, mirror, state_at, memo_at, shared_at, seasons
    cdef predict_t[MOST_MEMBERS] predicts
    cdef update_t[MOST_MEMBERS] updates
    cdef close_t[MOST_MEMBERS] closes
    @cython.locals(member=Member)
    cdef object attach(self)

cpdef double root_of(double, double) noexcept nogil
cdef void new_stream(Plan, Row, double, double) noexcept nogil
cdef void new_series(Plan, Row, double, double) noexcept nogil
