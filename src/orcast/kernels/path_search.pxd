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

cdef Py_ssize_t grid_size(Py_ssize_t) noexcept nogil
cdef void spread_points(Row, Py_ssize_t, Row) noexcept nogil
cdef Py_ssize_t fill_grid(Row, Py_ssize_t, Row, Row, Row) noexcept nogil
cdef Py_ssize_t put_point(double, double, Row, Py_ssize_t) noexcept nogil
cdef (double, Py_ssize_t) height_at(double, Row, Py_ssize_t, Row, Row, Py_ssize_t) noexcept nogil
cdef void witness_tilts(Rules, Py_ssize_t, Round, Row, Row, Workspace) noexcept nogil
cdef (double, double) crps_pull(Rules, Py_ssize_t, Round, Row, Workspace) noexcept nogil
cdef double best_path(Py_ssize_t, Row, double, Row, Workspace) noexcept nogil
cdef void step_paths(Py_ssize_t, Py_ssize_t, double, double, Row, Row, Row, Row, Workspace) noexcept nogil
cdef double add_mse_tilt(Rules, Py_ssize_t, Round, Row, Row, Workspace) noexcept nogil
cdef double fill_heights(Row, Py_ssize_t, Row, Py_ssize_t, Row, Row, Row, Row) noexcept nogil
cdef (double, double) field_of_pairs(
    Row, Py_ssize_t, Row, Py_ssize_t, Row, Row, Row, double, Row, Workspace
) noexcept nogil
cdef double path_weight(Py_ssize_t) noexcept nogil
cdef void take_paths(Rules, Py_ssize_t, Workspace) noexcept nogil
@cython.locals(last=bint)
cdef void search_paths(Rules, Memory, Row, bint, Round, Workspace) noexcept nogil
cdef void search_grid(Rules, Memory, double, Round, Row, Workspace) noexcept nogil
cdef void mix_in(Rules, Memory, Row, Row, Round, Workspace) noexcept nogil

@cython.locals(total=Py_ssize_t, cells=Py_ssize_t)
cpdef double best_path_arrays(
    object, object, object, object, object, double, double, object, double, object
) except? -1.0
cdef void put_best(double, Row, Row, Py_ssize_t, Workspace) noexcept nogil
cpdef object search_paths_arrays(Rules, Memory, Round, object, object, object, bint)
