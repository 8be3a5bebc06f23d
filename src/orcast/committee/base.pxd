cimport cython
from orcast.committee.state cimport Known, Member, Plan
from orcast.kernels.rows cimport Workspace, copy

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
cpdef Member member()
