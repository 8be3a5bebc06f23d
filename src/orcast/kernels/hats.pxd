cimport cython
from libc.math cimport floor
from orcast.kernels.rows cimport Row, Workspace, mark, numbers_of, readable_of, release, take, workspace

cdef double STEEP

@cython.locals(k=Py_ssize_t)
cdef (Py_ssize_t, double) hat(double at, Py_ssize_t grid) noexcept nogil
@cython.locals(k=Py_ssize_t)
cdef double hat_slope(double at, Py_ssize_t grid) noexcept nogil
cdef (Py_ssize_t, double) between(Row nodes, Py_ssize_t count, double at) noexcept nogil
cdef void chances(Row witness, Py_ssize_t events, Row p, Py_ssize_t cells, Row q) noexcept nogil
cdef void fill_field(
    Row s, Py_ssize_t grid, Row witness, Py_ssize_t events, Row p, Py_ssize_t cells, Row out, Workspace w
) noexcept nogil
cdef void fill_jacobian(
    Row s, Py_ssize_t grid, Row witness, Py_ssize_t events, Row p, Py_ssize_t cells, Row out, Workspace w
) noexcept nogil
cdef void fill_assessment(
    Row s, Py_ssize_t grid, double factor, Row witness, Py_ssize_t events, Row p, Py_ssize_t cells, Row linear,
    Row square, Workspace w
) noexcept nogil

cdef Py_ssize_t event_count(object s, Py_ssize_t grid, object witness, object p) except -1
@cython.locals(w=Workspace)
cpdef object event_field(object s, Py_ssize_t grid, object witness, object p)
@cython.locals(w=Workspace)
cpdef object event_jacobian(object s, Py_ssize_t grid, object witness, object p)
@cython.locals(w=Workspace)
cpdef tuple event_assess(object s, Py_ssize_t grid, double factor, object witness, object p)
