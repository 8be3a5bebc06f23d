cimport cython
from libc.math cimport floor
from orcast.kernels.rows cimport Workspace, mark, numbers_of, readable_of, release, take, workspace

cdef double STEEP

@cython.locals(k=Py_ssize_t)
cdef (Py_ssize_t, double) hat(double at, Py_ssize_t grid) noexcept nogil
@cython.locals(k=Py_ssize_t)
cdef double hat_slope(double at, Py_ssize_t grid) noexcept nogil
@cython.locals(left=Py_ssize_t, right=Py_ssize_t, middle=Py_ssize_t)
cdef (Py_ssize_t, double) between(double *nodes, Py_ssize_t count, double at) noexcept nogil
cdef void chances(double *witness, Py_ssize_t events, double *p, Py_ssize_t cells, double *q) noexcept nogil
cdef void fill_field(
    double *s, Py_ssize_t grid, double *witness, Py_ssize_t events, double *p, Py_ssize_t cells, double *out,
    Workspace w
) noexcept nogil
cdef void fill_jacobian(
    double *s, Py_ssize_t grid, double *witness, Py_ssize_t events, double *p, Py_ssize_t cells, double *out,
    Workspace w
) noexcept nogil
cdef void fill_assessment(
    double *s, Py_ssize_t grid, double factor, double *witness, Py_ssize_t events, double *p, Py_ssize_t cells,
    double *linear, double *square, Workspace w
) noexcept nogil

cdef Py_ssize_t event_count(object s, Py_ssize_t grid, object witness, object p) except -1
@cython.locals(w=Workspace)
cpdef object event_field(object s, Py_ssize_t grid, object witness, object p)
@cython.locals(w=Workspace)
cpdef object event_jacobian(object s, Py_ssize_t grid, object witness, object p)
@cython.locals(w=Workspace)
cpdef tuple event_assess(object s, Py_ssize_t grid, double factor, object witness, object p)
