cimport cython
from libc.math cimport exp, log
from libc.stdlib cimport abort, free, malloc

ctypedef long long int64_t  # numpy's int64 on every platform
ctypedef double *Row  # numbers
ctypedef int64_t *WholeRow  # whole numbers

cdef Py_ssize_t FIRST_BLOCK, BLOCKS, BLOCK_UNIT

cdef extern from *:
    """
    #if defined(__SANITIZE_ADDRESS__)
    #include <math.h>
    #include <sanitizer/asan_interface.h>
    #define FENCE 16
    static inline void open_scratch(double *row, Py_ssize_t size) {
        ASAN_UNPOISON_MEMORY_REGION(row, size * sizeof(double));
        for (Py_ssize_t i = 0; i < size; i++) row[i] = NAN;
    }
    #define close_scratch(row, size) ASAN_POISON_MEMORY_REGION(row, (size) * sizeof(double))
    #else
    #define FENCE 0
    #define open_scratch(row, size) ((void) (row), (void) (size))
    #define close_scratch(row, size) ((void) (row), (void) (size))
    #endif
    """
    const Py_ssize_t FENCE
    void open_scratch(double *row, Py_ssize_t size) noexcept nogil
    void close_scratch(double *row, Py_ssize_t size) noexcept nogil

@cython.locals(numbers="double[::1]")
cdef Row numbers_of(object) except NULL
@cython.locals(constants="const double[::1]")
cdef Row readable_of(object) except NULL
@cython.locals(numbers="long long[::1]")
cdef WholeRow whole_of(object) except NULL
cdef Row cut(Row, Py_ssize_t, Py_ssize_t) noexcept nogil
cdef WholeRow cut_whole(WholeRow, Py_ssize_t, Py_ssize_t) noexcept nogil

cdef class Workspace:
    cdef Row blocks[24]
    cdef Py_ssize_t sizes[24]
    cdef readonly Py_ssize_t block, used
    # the last layer of a round: cumulative payoff seen by the round, its tables, and the cells
    cdef Row cumulative, factors, cumulative_knots, cumulative_slopes, power_means, power_least
    cdef Row power_largest, width, middle
    cdef double square, free
    # Newton's method: the field, the residual and the linear system
    cdef Row s, knots, slopes, base
    cdef double crps_pull, mse_pull
    cdef Row F, p, v, h, r, upper, d, e, start
    # the certificate, by cell; regret gaps (a row of cells for each expert) and means (two numbers for each expert)
    cdef Row linear, norm, flat, gaps, regret_means
    # the best forecast so far
    cdef double best_missing
    cdef Row best_p, log_mix
    # growth of ||S||_+^2 within a cell: a polynomial, and scratch
    cdef Py_ssize_t poly_size
    cdef Row poly, part, bernstein, stack, powers, z
    # the last layer on finite spaces: cumulative payoffs on the hats of the forecast (`events` columns for each of the
    # `vertices`, which are `nodes` if the forecast is `drawn`), and against each of the rivals; pull on each event that
    # does not depend on the forecast, and factor of its squared error
    cdef Py_ssize_t cells, first, events, vertices, rivals, drawn
    cdef Row nodes, fixed, fixed_size, cumulative_regret, experts, units, prior, trial
    cdef double hat_factor, regret_factor, brier, eager

cdef inline Py_ssize_t whole_number(double x) noexcept nogil: return <Py_ssize_t> x

cdef inline Row new_block(Py_ssize_t size) noexcept nogil:
    cdef Row block = <Row> malloc(size * sizeof(double))
    if block == NULL:
        abort()
    return block

cdef void grow(Workspace, Py_ssize_t, Py_ssize_t) noexcept nogil
cdef Py_ssize_t mark(Workspace) noexcept nogil
cdef void release(Workspace, Py_ssize_t) noexcept nogil
cdef void close_since(Workspace, Py_ssize_t, Py_ssize_t) noexcept nogil
cdef Row take(Workspace, Py_ssize_t) noexcept nogil
cpdef Workspace workspace()
cdef void copy(Row, Py_ssize_t, Row) noexcept nogil
cdef double power(double, Py_ssize_t) noexcept nogil
cdef double real_power(double, double) noexcept nogil
cdef Py_ssize_t search_left(Row, Py_ssize_t, double) noexcept nogil
