from orcast.committee.regression cimport (
    FEATURES, OUTCOME_FEATURES, all_features, centre_of, learn_squares, outcome_features, remembered, start_squares,
    target_of
)
from orcast.committee.spread cimport COUNT, MEMO_SIZE, OWN_SIZE, SHARED_SIZE, close_spread, learn_spread, spread_around
from orcast.committee.state cimport Known, Member, Plan
from orcast.kernels.rows cimport Row, Workspace, cut, whole_number

cdef Py_ssize_t X_AT

cdef Py_ssize_t spread_at(Py_ssize_t) noexcept nogil
cdef void predict(Plan, Row, Known *, Row, Row, Row, Row, Row, Workspace) noexcept nogil
cdef void update(Plan, Row, Known *, Row, Row, Row, Row, double, double) noexcept nogil
cdef void close(Plan, Row, Row, double, double) noexcept nogil
cpdef Member member(object, double, bint, double)
