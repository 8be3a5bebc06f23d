cimport cython
from libc.math cimport exp, log
from libc.stdlib cimport abort, free, malloc

ctypedef long long int64_t  # numpy's int64 on every platform

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
cdef double *numbers_of(object row) except NULL
@cython.locals(constants="const double[::1]")
cdef double *readable_of(object row) except NULL
@cython.locals(numbers="long long[::1]")
cdef int64_t *whole_of(object row) except NULL
cdef double *cut(double *row, Py_ssize_t at, Py_ssize_t size) noexcept nogil
cdef int64_t *cut_whole(int64_t *row, Py_ssize_t at, Py_ssize_t size) noexcept nogil

cdef class Workspace:
    cdef double *blocks[24]
    cdef Py_ssize_t sizes[24]
    cdef readonly Py_ssize_t block, used
    # the last layer of a round: cumulative payoff seen by the round, its tables, and the cells
    cdef double *cumulative
    cdef double *factors
    cdef double *cumulative_knots
    cdef double *cumulative_slopes
    cdef double *standing
    cdef double *reach
    cdef double *witness_mean
    cdef double *witness_least
    cdef double *witness_largest
    cdef double *width
    cdef double *middle
    cdef double square, free
    # Newton's method: the field, the residual and the linear system
    cdef double *s
    cdef double *knots
    cdef double *slopes
    cdef double *base
    cdef double crps_pull, mse_pull
    cdef double *F
    cdef double *p
    cdef double *v
    cdef double *h
    cdef double *r
    cdef double *upper
    cdef double *d
    cdef double *e
    cdef double *start
    # the certificate, by cell; regret gaps (a row of cells for each expert) and means (two numbers for each expert)
    cdef double *linear
    cdef double *norm
    cdef double *flat
    cdef double *gaps
    cdef double *regret_means
    # the best forecast so far
    cdef double best_missing
    cdef double *best_p
    cdef double *log_mix
    # growth of ||S||_+^2 within a cell: a polynomial, three coefficients and the standing of each regret, and scratch
    cdef Py_ssize_t poly_size, regret_count
    cdef double *poly
    cdef double *quadratics
    cdef double *squares
    cdef double *part
    cdef double *bernstein
    cdef double *stack
    cdef double *powers
    cdef double *z
    # paths on a grid of points of F: the fields of pairs of points, tilts by cell, and the predecessors of points
    cdef Py_ssize_t point_count, passes
    cdef double *points
    cdef double *fields
    cdef double *tilt_mean
    cdef double *tilt_largest
    cdef double *tilt_bound
    cdef double *cumulated
    cdef double path_pull, path_weight, path_constant, field_size, field_norm
    cdef int64_t *steps

cdef inline double *new_block(Py_ssize_t size) noexcept nogil:
    cdef double *block = <double *> malloc(size * sizeof(double))
    if block == NULL:
        abort()
    return block

cdef inline int64_t *as_whole(double *row) noexcept nogil:
    return <int64_t *> row

cdef void grow(Workspace w, Py_ssize_t block, Py_ssize_t size) noexcept nogil
cdef Py_ssize_t mark(Workspace w) noexcept nogil
cdef void release(Workspace w, Py_ssize_t mark) noexcept nogil
cdef void close_since(Workspace w, Py_ssize_t block, Py_ssize_t used) noexcept nogil
cdef double *take(Workspace w, Py_ssize_t size) noexcept nogil
cdef int64_t *take_whole(Workspace w, Py_ssize_t size) noexcept nogil
cpdef Workspace workspace()
cdef void copy(double *source, Py_ssize_t size, double *target) noexcept nogil
cdef double power(double x, Py_ssize_t n) noexcept nogil
cdef double real_power(double x, double exponent) noexcept nogil
cdef Py_ssize_t search_left(double *row, Py_ssize_t size, double value) noexcept nogil
