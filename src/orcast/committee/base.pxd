cimport cython
from orcast.committee.state cimport Known, Member, Plan
from orcast.kernels.rows cimport Row, Workspace, copy

cdef void predict(
    Plan plan, Row options, Known *known, Row base, Row state, Row shared, Row memo, Row out, Workspace w
) noexcept nogil
cdef void update(
    Plan plan, Row options, Known *known, Row base, Row state, Row shared, Row memo, double y, double lag
) noexcept nogil
cdef void close(Plan plan, Row options, Row shared, double weight, double lag) noexcept nogil
@cython.locals(found=Member)
cpdef Member member()
