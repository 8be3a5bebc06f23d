from libc.math cimport fabs, isnan
from orcast.committee.series cimport observe
from orcast.committee.spread cimport sort
from orcast.committee.state cimport KNOWN_SIZE, Plan, as_known, as_pool, as_stream, new_series, new_stream
from orcast.committee.stream cimport (
    MOST_SIZE, SIZE_RATE, close_pool, fill_known, pinball, predict_members, smallest_loss, update_stream, working
)
from orcast.committee.weights cimport add_regrets, fill_regrets, fill_weights, level_weight
from orcast.kernels.rows cimport (
    Row, WholeRow, Workspace, copy, cut, cut_whole, int64_t, mark, numbers_of, readable_of, release, take, whole_of,
    workspace
)

cdef double NAN, PER_ABSOLUTE
cdef Py_ssize_t MIXING_SIZE
cdef int64_t PREDICT, SETTLE

cdef class Group:
    cdef readonly Plan plan
    cdef readonly object source, whole, stream_rows, series_rows, pool_rows, pooling, mixing, log_prior
    cdef readonly Py_ssize_t stream_count, series_count, pool_count, memo_size
    cdef WholeRow series_of, pool_of, below, above, shortest
    cdef Row streams, series, pools, mixing_row, prior_row
    cpdef object point(self)

cdef Row stream_row(Plan, Group, Py_ssize_t) noexcept nogil
cdef Row series_row(Plan, Group, Py_ssize_t) noexcept nogil
cdef Row pool_row(Plan, Group, Py_ssize_t) noexcept nogil
cdef void close_pools(Plan, Group) noexcept nogil
cdef void predict_experts(Plan, Group, Row, double, Row, Row, Workspace) noexcept nogil
cdef void mix_experts(Plan, Group, Row, Row, Workspace) noexcept nogil
cdef void leave_out_missing(Plan, Group, Row, Row) noexcept nogil
cdef void update_experts(Plan, Group, Row, double, double, Workspace) noexcept nogil
cdef void learn_mixing(Plan, Group, Row, double, Workspace) noexcept nogil
cpdef tuple predict(Group, object, double)
cpdef object update(Group, object, double, double)

cdef class GroupRun:
    cdef readonly Group group
    cdef readonly object memo_rows, place, free, base, prior
    cdef tuple whole, numbers
    cdef bint has_points
    cdef WholeRow stream_, time_
    cdef Row value_, points_, spreads_, reach_, base_, prior_, memos_
    cdef WholeRow place_, free_

cdef void run_events(Plan, Group, GroupRun, WholeRow, Py_ssize_t, Workspace) noexcept nogil
cdef void free_place(GroupRun, Py_ssize_t) noexcept nogil
cdef void open_row(Plan, Group, GroupRun, Py_ssize_t) noexcept nogil
cdef double median_for(Plan, Group, Py_ssize_t, double) noexcept nogil
cdef double median_before_for(Plan, Group, Py_ssize_t, double) noexcept nogil
cdef void issue_row(Plan, Group, GroupRun, Py_ssize_t, Workspace) noexcept nogil
cdef void settle_row(Plan, Group, GroupRun, Py_ssize_t, Workspace) noexcept nogil
