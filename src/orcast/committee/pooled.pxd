from orcast.committee.regression cimport FEATURES, all_features, centre_of, solve_positive, target_of
from orcast.committee.spread cimport MEMO_SIZE, OWN_SIZE, SHARED_SIZE, STEPS, close_spread, learn_spread, spread_around
from orcast.committee.state cimport Known, Member, Plan
from orcast.kernels.rows cimport Row, Workspace, copy, cut, real_power

cdef Py_ssize_t SQUARES, EQUATIONS_SIZE, REGRESSION_SIZE, X_AT

cdef Row regression_of(Plan, Row) noexcept nogil

cdef void predict(Plan, Row, Known *, Row, Row, Row, Row, Row, Workspace) noexcept nogil
cdef void update(Plan, Row, Known *, Row, Row, Row, Row, double, double) noexcept nogil
cdef void close(Plan, Row, Row, double, double) noexcept nogil
cpdef Member member(double)
