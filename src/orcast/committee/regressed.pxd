cimport cython
from orcast.committee.state cimport Known, Member, Plan
from orcast.committee.regression cimport (
    FEATURES, OUTCOME_FEATURES, all_features, centre_of, learn_squares, outcome_features, remembered, start_squares,
    target_of
)
from orcast.committee.spread cimport (
    COUNT, MEMO_SIZE, OWN_SIZE, SHARED_SIZE, close_spread, learn_spread, spread_around
)
from orcast.kernels.rows cimport Workspace, cut

cdef Py_ssize_t X_AT

cdef Py_ssize_t spread_at(Py_ssize_t size) noexcept nogil
@cython.locals(size=Py_ssize_t)
cdef void predict(
    Plan plan, double *options, Known *known, double *base, double *state, double *shared, double *memo, double *out,
    Workspace w
) noexcept nogil
@cython.locals(size=Py_ssize_t)
cdef void update(
    Plan plan, double *options, Known *known, double *base, double *state, double *shared, double *memo, double y,
    double lag
) noexcept nogil
cdef void close(Plan plan, double *options, double *shared, double weight, double lag) noexcept nogil
@cython.locals(found=Member)
cpdef Member member(object name, double forget, bint outcomes_only, double share)
