from libc.math cimport fabs, log
from orcast.kernels.rows cimport (
    Row, Workspace, mark, numbers_of, power, readable_of, real_power, release, take, workspace
)

cdef double ATOM, TAIL_SPREAD, TAIL_LOSS, TAIL_LEAST, NO_SPREAD, TAIL_FALL, TAIL_POWER, TAIL_FLOOR

cdef double tail_edges(double, double, Row, Py_ssize_t) noexcept nogil
cdef double tail_fall(double, double, double, Row, Py_ssize_t) noexcept nogil
cdef Py_ssize_t build_cells(
    Row, Py_ssize_t, double, double, Py_ssize_t, double, double, Row, Row, Row, Workspace
) noexcept nogil
cdef Py_ssize_t locate(double, Row, Row, Py_ssize_t) noexcept nogil
cdef Py_ssize_t cut_cells(Row, Py_ssize_t, Py_ssize_t, Row, Row, Row) noexcept nogil
cdef void rebin(Py_ssize_t, Row, Row, Row, Py_ssize_t, Row, Row, Row) noexcept nogil
cdef double crps(double, Py_ssize_t, Py_ssize_t, Row, Row, Row) noexcept nogil
cdef double expected_crps(Py_ssize_t, Row, Row, Row) noexcept nogil
cdef double mean_of(Py_ssize_t, Row, Row, Row) noexcept nogil
cdef double power_mean(double, double, Py_ssize_t) noexcept nogil
cdef void log_masses(Py_ssize_t, Row, Row) noexcept nogil

cpdef object cells_of(object, double, double, Py_ssize_t, double)
cpdef object rebin_arrays(Py_ssize_t, object, object, object, Py_ssize_t, object, object, object)
