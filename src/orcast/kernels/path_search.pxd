cimport cython
from libc.math cimport fabs, log
from orcast.kernels.certificate cimport add_moments, cell_maximum
from orcast.kernels.judging cimport judge, keep, keep_if_better, open_workspace
from orcast.kernels.rows cimport (
    Workspace, copy, int64_t, mark, numbers_of, readable_of, release, take, take_whole, workspace
)
from orcast.kernels.state cimport Memory, Round, Rules

cdef double LEAST_FALL, BARELY, LEAST_TILT, LIGHT, HEAVY, INF
cdef Py_ssize_t POINTS, NEAREST

cdef Py_ssize_t grid_size(Py_ssize_t count) noexcept nogil
@cython.locals(gap=Py_ssize_t, each=Py_ssize_t, share=double)
cdef void spread_points(double *levels, Py_ssize_t count, double *points) noexcept nogil
cdef Py_ssize_t fill_grid(
    double *levels, Py_ssize_t count, double *knots, double *slopes, double *points
) noexcept nogil
cdef Py_ssize_t put_point(double zero, double aside, double *points, Py_ssize_t total) noexcept nogil
cdef (double, Py_ssize_t) height_at(
    double u, double *levels, Py_ssize_t count, double *knots, double *slopes, Py_ssize_t start
) noexcept nogil
cdef void witness_tilts(
    Rules rules, Py_ssize_t n, Round round, double *mean, double *most, Workspace w
) noexcept nogil
cdef (double, double) crps_pull(Rules rules, Py_ssize_t n, Round round, double *cumulated, Workspace w) noexcept nogil
cdef double best_path(Py_ssize_t n, double *width, double bound, double *masses, Workspace w) noexcept nogil
cdef void step_paths(
    Py_ssize_t k, Py_ssize_t n, double width, double bound, double *A, double *best, double *next_A,
    double *next_best, Workspace w
) noexcept nogil
cdef double add_mse_tilt(Rules rules, Py_ssize_t n, Round round, double *p, double *most, Workspace w) noexcept nogil
cdef double fill_heights(
    double *points, Py_ssize_t total, double *levels, Py_ssize_t count, double *knots, double *slopes,
    double *heights, double *out
) noexcept nogil
cdef (double, double) field_of_pairs(
    double *points, Py_ssize_t total, double *levels, Py_ssize_t count, double *knots, double *slopes,
    double *factors, double square_share, double *out, Workspace w
) noexcept nogil
cdef double path_weight(Py_ssize_t stage) noexcept nogil
cdef void take_paths(Rules rules, Py_ssize_t n, Workspace w) noexcept nogil
@cython.locals(n=Py_ssize_t, stages=Py_ssize_t, last=bint)
cdef void search_paths(
    Rules rules, Memory memory, double *mix, bint thorough, Round round, Workspace w
) noexcept nogil
@cython.locals(n=Py_ssize_t)
cdef void search_grid(
    Rules rules, Memory memory, double apart, Round round, double *masses, Workspace w
) noexcept nogil
@cython.locals(n=Py_ssize_t)
cdef void mix_in(Rules rules, Memory memory, double *mix, double *masses, Round round, Workspace w) noexcept nogil

@cython.locals(total=Py_ssize_t, cells=Py_ssize_t)
cpdef double best_path_arrays(
    object points, object fields, object tilt_mean, object tilt_bound, object cumulated, double pull, double weight,
    object width, double bound, object masses
) except? -1.0
cdef void put_best(double missing, double *p, double *mix, Py_ssize_t n, Workspace w) noexcept nogil
cpdef object search_paths_arrays(
    Rules rules, Memory memory, Round round, object witness, object free, object mix, bint thorough
)
