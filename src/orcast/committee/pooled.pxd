cimport cython
from orcast.committee.regression cimport FEATURES, all_features, centre_of, solve_positive, target_of
from orcast.committee.spread cimport MEMO_SIZE, OWN_SIZE, SHARED_SIZE, STEPS, close_spread, learn_spread, spread_around
from orcast.committee.state cimport Known, Member, Plan
from orcast.kernels.rows cimport Row, Workspace, copy, cut, real_power

cdef Py_ssize_t SQUARES, EQUATIONS_SIZE, REGRESSION_SIZE, X_AT

cdef Row regression_of(Plan plan, Row shared) noexcept nogil

cdef void predict(
    Plan plan, Row options, Known *known, Row base, Row state, Row shared, Row memo, Row out, Workspace w
) noexcept nogil
cdef void update(
    Plan plan, Row options, Known *known, Row base, Row state, Row shared, Row memo, double y, double lag
) noexcept nogil
cdef void close(Plan plan, Row options, Row shared, double weight, double lag) noexcept nogil
@cython.locals(found=Member)
cpdef Member member(double forget)
