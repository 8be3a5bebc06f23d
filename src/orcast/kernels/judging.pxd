from libc.math cimport fabs, isnan
from orcast.kernels.cells cimport expected_crps, power_mean
from orcast.kernels.certificate cimport certify, new_function, resolution
from orcast.kernels.equilibrium cimport crps_difference, field_tables, means_of, power_table
from orcast.kernels.ledger cimport available_slack, combine, squared_norm, write_certificate
from orcast.kernels.rows cimport Row, Workspace, cut, mark, readable_of, release, take, workspace
from orcast.kernels.state cimport Memory, Round, Rules, cell_count

cdef double INF, MAX_TILT, OWN_EXPECTATION_WEIGHT

cdef void level_ledger(Rules, Row, double, Row) noexcept nogil
cdef void take_rows(Rules, Py_ssize_t, Workspace) noexcept nogil
cdef void take_newton_rows(Py_ssize_t, Py_ssize_t, Workspace) noexcept nogil
cdef void new_workspace(Rules, Memory, Round, double, Workspace) noexcept nogil
cdef double crps_unit(Rules, Memory, Py_ssize_t, Round, Row, Py_ssize_t) noexcept nogil
cdef double mse_unit(Rules, Memory, Py_ssize_t, Round, Row, Py_ssize_t) noexcept nogil
cdef void regret_units(Rules, Memory, Py_ssize_t, Round, Row) noexcept nogil
cdef double judge(Rules, Memory, Round, Row, Workspace) noexcept nogil
cdef void allow_resolution(Rules, Memory, Py_ssize_t, Round, Row, Workspace) noexcept nogil
cdef void keep_if_better(double, Row, double, Round, Workspace) noexcept nogil
cpdef object regret_units_arrays(Rules, Memory, Round, object)
cpdef object certify_arrays(Rules, Memory, Round, object)
