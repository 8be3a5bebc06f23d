cimport cython
from libc.math cimport fabs, isnan
from orcast.kernels.cells cimport expected_crps, power_mean
from orcast.kernels.certificate cimport certify, new_function, regret_standing, resolution
from orcast.kernels.equilibrium cimport crps_difference, field_tables, power_table
from orcast.kernels.ledger cimport available_slack, combine, squared_norm, write_certificate
from orcast.kernels.rows cimport Row, Workspace, copy, cut, mark, readable_of, release, take, workspace
from orcast.kernels.state cimport Memory, Round, Rules, cell_count

cdef double INF, MAX_TILT, OWN_EXPECTATION_WEIGHT

cdef void level_ledger(Rules rules, Row cumulative, double scale, Row out) noexcept nogil
cdef void take_rows(Rules rules, Py_ssize_t n, Workspace w) noexcept nogil
cdef void take_newton_rows(Py_ssize_t count, Py_ssize_t n, Workspace w) noexcept nogil
cdef void new_workspace(Rules rules, Memory memory, Round round, double reserved, Workspace w) noexcept nogil
cdef double crps_unit(Rules rules, Memory memory, Py_ssize_t n, Round round, Row p, Py_ssize_t e) noexcept nogil
cdef double mse_unit(Rules rules, Memory memory, Py_ssize_t n, Round round, Row p, Py_ssize_t e) noexcept nogil
cdef void regret_units(Rules rules, Memory memory, Py_ssize_t n, Round round, Row p) noexcept nogil
cdef double judge(Rules rules, Memory memory, Round round, Row p, Workspace w) noexcept nogil
cdef void allow_resolution(Rules rules, Memory memory, Py_ssize_t n, Round round, Row p, Workspace w) noexcept nogil
cdef void keep(Row lp, double temperature, Round round, Workspace w) noexcept nogil
cdef void keep_if_better(double missing, Row lp, double temperature, Round round, Workspace w) noexcept nogil
cdef void put_witnesses(Rules rules, Row table, Workspace w) noexcept nogil
cdef Py_ssize_t open_workspace(
    Rules rules, Memory memory, Round round, object witness, object free, Workspace w
) except -1
cpdef object regret_units_arrays(Rules rules, Memory memory, Round round, object p)
@cython.locals(n=Py_ssize_t)
cpdef object certify_arrays(Rules rules, Memory memory, Round round, object witness, object free)
