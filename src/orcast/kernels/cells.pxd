cimport cython
from libc.math cimport fabs, log
from orcast.kernels.rows cimport (
    Workspace, int64_t, mark, numbers_of, power, readable_of, real_power, release, take, whole_of, workspace
)

cdef double ATOM, TAIL_SPREAD, TAIL_LOSS, TAIL_LEAST, NO_SPREAD, TAIL_FALL, TAIL_POWER, TAIL_FLOOR

cdef double tail_edges(double distance, double first, double *out, Py_ssize_t m) noexcept nogil
cdef double tail_fall(double distance, double first, double atom, double *tail, Py_ssize_t m) noexcept nogil
cdef Py_ssize_t build_cells(
    double *q, Py_ssize_t count, double low, double high, Py_ssize_t tail_cells, double tail_mass, double usual,
    double *left, double *right, double *mass, int64_t *slots, Workspace w
) noexcept nogil
cdef Py_ssize_t locate(double y, double *left, double *right, Py_ssize_t n) noexcept nogil
cdef Py_ssize_t cut_cells(
    double *places, Py_ssize_t count, Py_ssize_t n, double *left, double *right, double *mass, int64_t *slots,
    Py_ssize_t slot_count
) noexcept nogil
cdef void rebin(
    Py_ssize_t n_from, double *left_from, double *right_from, double *mass_from, Py_ssize_t n, double *left,
    double *right, double *out
) noexcept nogil
cdef double crps(double y, Py_ssize_t k, Py_ssize_t n, double *left, double *right, double *mass) noexcept nogil
cdef double expected_crps(Py_ssize_t n, double *left, double *right, double *mass) noexcept nogil
cdef double mean_of(Py_ssize_t n, double *left, double *right, double *mass) noexcept nogil
cdef double power_mean(double a, double b, Py_ssize_t order) noexcept nogil
cdef void log_masses(Py_ssize_t n, double *mass, double *out) noexcept nogil

cpdef Py_ssize_t build_cells_arrays(
    object q, double low, double high, Py_ssize_t tail_cells, double tail_mass, double usual, object left, object right,
    object mass, object slots
) except -1
cpdef Py_ssize_t locate_arrays(double y, object left, object right, Py_ssize_t n) except -1
cpdef Py_ssize_t cut_cells_arrays(
    object places, Py_ssize_t n, object left, object right, object mass, object slots
) except -1
cpdef object rebin_arrays(
    Py_ssize_t n_from, object left_from, object right_from, object mass_from, Py_ssize_t n, object left, object right,
    object out
)
