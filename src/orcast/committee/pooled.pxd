cimport cython
from orcast.committee.state cimport Known, Member, Plan
from orcast.committee.regression cimport FEATURES, all_features, centre_of, solve_positive, target_of
from orcast.committee.spread cimport (
    MEMO_SIZE, OWN_SIZE, SHARED_SIZE, STEPS, close_spread, learn_spread, spread_around
)
from orcast.kernels.rows cimport Workspace, copy, cut, real_power

cdef Py_ssize_t SQUARES, EQUATIONS_SIZE, REGRESSION_SIZE, X_AT

cdef double *regression_of(Plan plan, double *shared) noexcept nogil

cdef void predict(
    Plan plan, double *options, Known *known, double *base, double *state, double *shared, double *memo, double *out,
    Workspace w
) noexcept nogil
cdef void update(
    Plan plan, double *options, Known *known, double *base, double *state, double *shared, double *memo, double y,
    double lag
) noexcept nogil
cdef void close(Plan plan, double *options, double *shared, double weight, double lag) noexcept nogil
@cython.locals(found=Member)
cpdef Member member(double forget)
