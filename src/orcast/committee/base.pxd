cimport cython
from orcast.committee.state cimport Known, Member, Plan
from orcast.kernels.rows cimport Row, Workspace, copy

cdef void predict(Plan, Row, Known *, Row, Row, Row, Row, Row, Workspace) noexcept nogil
cdef void update(Plan, Row, Known *, Row, Row, Row, Row, double, double) noexcept nogil
cdef void close(Plan, Row, Row, double, double) noexcept nogil
@cython.locals(found=Member)
cpdef Member member()
