cimport cython
from libc.math cimport fabs, log
from orcast.kernels.rows cimport (
    Row, WholeRow, Workspace, mark, numbers_of, power, readable_of, real_power, release, take
)

cdef double ATOM, TAIL_SPREAD, TAIL_LOSS, TAIL_LEAST, NO_SPREAD, TAIL_FALL, TAIL_POWER, TAIL_FLOOR

cdef double tail_edges(double distance, double first, Row out, Py_ssize_t m) noexcept nogil
cdef double tail_fall(double distance, double first, double atom, Row tail, Py_ssize_t m) noexcept nogil
cdef Py_ssize_t build_cells(
    Row q, Py_ssize_t count, double low, double high, Py_ssize_t tail_cells, double tail_mass, double usual, Row left,
    Row right, Row mass, WholeRow slots, Workspace w
) noexcept nogil
cdef Py_ssize_t locate(double y, Row left, Row right, Py_ssize_t n) noexcept nogil
cdef Py_ssize_t cut_cells(
    Row places, Py_ssize_t count, Py_ssize_t n, Row left, Row right, Row mass, WholeRow slots, Py_ssize_t slot_count
) noexcept nogil
cdef void rebin(
    Py_ssize_t n_from, Row left_from, Row right_from, Row mass_from, Py_ssize_t n, Row left, Row right, Row out
) noexcept nogil
cdef double crps(double y, Py_ssize_t k, Py_ssize_t n, Row left, Row right, Row mass) noexcept nogil
cdef double expected_crps(Py_ssize_t n, Row left, Row right, Row mass) noexcept nogil
cdef double mean_of(Py_ssize_t n, Row left, Row right, Row mass) noexcept nogil
cdef double power_mean(double a, double b, Py_ssize_t order) noexcept nogil
cdef void log_masses(Py_ssize_t n, Row mass, Row out) noexcept nogil

cpdef Py_ssize_t locate_arrays(double y, object left, object right, Py_ssize_t n) except -1
cpdef object rebin_arrays(
    Py_ssize_t n_from, object left_from, object right_from, object mass_from, Py_ssize_t n, object left, object right,
    object out
)
