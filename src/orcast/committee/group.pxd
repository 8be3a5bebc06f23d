cimport cython
from libc.math cimport fabs, isnan
from orcast.committee.series cimport observe
from orcast.committee.spread cimport sort
from orcast.committee.state cimport (
    KNOWN_SIZE, Constants, Known, Plan, Pool, Stream, as_known, as_pool, as_stream, new_series, new_stream
)
from orcast.committee.stream cimport (
    MOST_SIZE, SIZE_RATE, close_pool, fill_known, pinball, predict_members, smallest_loss, update_stream, working
)
from orcast.committee.weights cimport add_regrets, fill_regrets, fill_weights, level_weight
from orcast.kernels.rows cimport (
    Workspace, copy, cut, cut_whole, int64_t, mark, numbers_of, readable_of, release, take, whole_of, workspace
)

cdef double NAN, PER_ABSOLUTE
cdef Py_ssize_t MIXING_SIZE
cdef int64_t PREDICT, SETTLE

cdef class Group:
    cdef readonly Plan plan
    cdef readonly object source, whole, stream_rows, series_rows, pool_rows, pooling, mixing, log_prior
    cdef readonly Py_ssize_t stream_count, series_count, pool_count, memo_size
    cdef int64_t *series_of
    cdef int64_t *pool_of
    cdef int64_t *below
    cdef int64_t *above
    cdef int64_t *shortest
    cdef double *streams
    cdef double *series
    cdef double *pools
    cdef double *mixing_row
    cdef double *prior_row
    @cython.locals(n=Py_ssize_t)
    cpdef object point(self)

cdef double *stream_row(Plan plan, Group group, Py_ssize_t s) noexcept nogil
cdef double *series_row(Plan plan, Group group, Py_ssize_t s) noexcept nogil
@cython.locals(at=Py_ssize_t)
cdef double *pool_row(Plan plan, Group group, Py_ssize_t s) noexcept nogil
cdef void close_pools(Plan plan, Group group) noexcept nogil
@cython.locals(target="double *")
cdef void predict_experts(
    Plan plan, Group group, double *experts, double time, double *memo, double *out, Workspace w
) noexcept nogil
cdef void mix_experts(Plan plan, Group group, double *memo, double *out, Workspace w) noexcept nogil
cdef void leave_out_missing(Plan plan, Group group, double *memo, double *weights) noexcept nogil
cdef void update_experts(Plan plan, Group group, double *memo, double y, double late, Workspace w) noexcept nogil
cdef void learn_mixing(Plan plan, Group group, double *memo, double y, Workspace w) noexcept nogil
cpdef tuple predict(Group group, object experts, double time)
cpdef object update(Group group, object memo, double y, double late)

cdef class GroupRun:
    cdef readonly Group group
    cdef readonly object memo_rows, place, free, base, prior
    cdef tuple whole, numbers
    cdef bint has_points
    cdef int64_t *stream_
    cdef int64_t *time_
    cdef double *value_
    cdef double *points_
    cdef double *spreads_
    cdef double *reach_
    cdef double *base_
    cdef double *prior_
    cdef double *memos_
    cdef int64_t *place_
    cdef int64_t *free_

@cython.locals(i=Py_ssize_t, j=Py_ssize_t, end=Py_ssize_t)
cdef void run_events(Plan plan, Group group, GroupRun run, int64_t *events, Py_ssize_t count, Workspace w) noexcept nogil
cdef void free_place(GroupRun run, Py_ssize_t row) noexcept nogil
@cython.locals(s=Py_ssize_t)
cdef void open_row(Plan plan, Group group, GroupRun run, Py_ssize_t row) noexcept nogil
cdef double median_for(Plan plan, Group group, Py_ssize_t s, double target) noexcept nogil
cdef double median_before_for(Plan plan, Group group, Py_ssize_t s, double target) noexcept nogil
@cython.locals(s=Py_ssize_t, place=Py_ssize_t, first=Py_ssize_t)
cdef void issue_row(Plan plan, Group group, GroupRun run, Py_ssize_t row, Workspace w) noexcept nogil
@cython.locals(s=Py_ssize_t)
cdef void settle_row(Plan plan, Group group, GroupRun run, Py_ssize_t row, Workspace w) noexcept nogil
