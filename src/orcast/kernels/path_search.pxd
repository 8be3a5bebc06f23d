cimport cython
from libc.math cimport fabs, log
from orcast.kernels.certificate cimport add_moments, cell_maximum
from orcast.kernels.judging cimport judge, keep, keep_if_better, open_workspace
from orcast.kernels.rows cimport (
    Row, Workspace, copy, mark, numbers_of, readable_of, release, take, take_whole, workspace
)
from orcast.kernels.state cimport Memory, Round, Rules, cell_count

cdef double LEAST_FALL, BARELY, LEAST_TILT, LIGHT, HEAVY, INF
cdef Py_ssize_t POINTS, NEAREST

cdef Py_ssize_t grid_size(Py_ssize_t count) noexcept nogil
cdef void spread_points(Row levels, Py_ssize_t count, Row points) noexcept nogil
cdef Py_ssize_t fill_grid(Row levels, Py_ssize_t count, Row knots, Row slopes, Row points) noexcept nogil
cdef Py_ssize_t put_point(double zero, double aside, Row points, Py_ssize_t total) noexcept nogil
cdef (
    double, Py_ssize_t) height_at(double u, Row levels, Py_ssize_t count, Row knots, Row slopes, Py_ssize_t start
) noexcept nogil
cdef void witness_tilts(Rules rules, Py_ssize_t n, Round round, Row mean, Row most, Workspace w) noexcept nogil
cdef (double, double) crps_pull(Rules rules, Py_ssize_t n, Round round, Row cumulated, Workspace w) noexcept nogil
cdef double best_path(Py_ssize_t n, Row width, double bound, Row masses, Workspace w) noexcept nogil
cdef void step_paths(
    Py_ssize_t k, Py_ssize_t n, double width, double bound, Row A, Row best, Row next_A, Row next_best, Workspace w
) noexcept nogil
cdef double add_mse_tilt(Rules rules, Py_ssize_t n, Round round, Row p, Row most, Workspace w) noexcept nogil
cdef double fill_heights(
    Row points, Py_ssize_t total, Row levels, Py_ssize_t count, Row knots, Row slopes, Row heights, Row out
) noexcept nogil
cdef (
    double, double) field_of_pairs(Row points, Py_ssize_t total, Row levels, Py_ssize_t count, Row knots, Row slopes,
    Row factors, double square_share, Row out, Workspace w
) noexcept nogil
cdef double path_weight(Py_ssize_t stage) noexcept nogil
cdef void take_paths(Rules rules, Py_ssize_t n, Workspace w) noexcept nogil
@cython.locals(last=bint)
cdef void search_paths(Rules rules, Memory memory, Row mix, bint thorough, Round round, Workspace w) noexcept nogil
cdef void search_grid(Rules rules, Memory memory, double apart, Round round, Row masses, Workspace w) noexcept nogil
cdef void mix_in(Rules rules, Memory memory, Row mix, Row masses, Round round, Workspace w) noexcept nogil

@cython.locals(total=Py_ssize_t, cells=Py_ssize_t)
cpdef double best_path_arrays(
    object points, object fields, object tilt_mean, object tilt_bound, object cumulated, double pull, double weight,
    object width, double bound, object masses
) except? -1.0
cdef void put_best(double missing, Row p, Row mix, Py_ssize_t n, Workspace w) noexcept nogil
cpdef object search_paths_arrays(
    Rules rules, Memory memory, Round round, object witness, object free, object mix, bint thorough
)
