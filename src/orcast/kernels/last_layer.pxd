cimport cython
from libc.math cimport exp, sqrt
from orcast.kernels.cells cimport log_masses, mean_of
from orcast.kernels.equilibrium cimport field_tables, solve
from orcast.kernels.judging cimport (
    allow_resolution, judge, keep, keep_if_better, level_ledger, new_workspace, regret_units
)
from orcast.kernels.path_search cimport NEAREST, search_paths
from orcast.kernels.rows cimport Row, Workspace, copy, cut, mark, real_power, release, take
from orcast.kernels.state cimport Layout, Memory, Round, Rules, Statistics, cell_count, part_at, rival_at

cdef double CHANCE, FAULT, FEW, CLEAR_FAULT, LEAST_FIRM, FIRM, LEAST_SOFT, CLOSEST_RATIO, DELAY_TEMPERATURE, EASY, LOWEST
cdef double STRICT, TRUSTED
cdef Py_ssize_t CONTINUATION, EASY_STEPS, STRICT_STEPS

cdef void pull_crps(double pull, Py_ssize_t n, Round round, Row expert, Workspace w) noexcept nogil
cdef void pull_mse(double pull, Py_ssize_t n, Round round, Row expert, Workspace w) noexcept nogil
cdef void prepare(Rules rules, double temperature, double eager, Round round, Workspace w) noexcept nogil
cdef double equilibrium(
    Rules rules, double temperature, double eager, Round round, Row lp, double tolerance, Py_ssize_t steps, Workspace w
) noexcept nogil
cdef double solve_strictly(Rules rules, double temperature, Round round, Row start, Row lp, Workspace w) noexcept nogil
cdef void descend(Rules rules, Memory memory, double temperature, Round round, Row start, Workspace w) noexcept nogil
cdef void approach(
    Rules rules, Memory memory, double lower, double higher, Round round, Row start, Workspace w
) noexcept nogil
cdef double expert_fault(Rules rules, Row misses) noexcept nogil
cdef double gain_of(Rules rules, Memory memory) noexcept nogil
cdef double chance_softness(
    Statistics *statistics, double pending, double square, double fault, double gain
) noexcept nogil
cdef double used_share(Layout layout, Memory memory, Row context, double square) noexcept nogil
cdef void first_solution(Rules rules, Memory memory, Round round, Row lp, Workspace w) noexcept nogil
cdef void try_experts(Rules rules, Memory memory, Round round, Workspace w) noexcept nogil
cdef void search(Rules rules, Memory memory, Row mix, bint thorough, Round round, Row lp, Workspace w) noexcept nogil
cdef void run_rounds(
    Rules rules, Memory memory, Row mix, double reserved, bint thorough, Round round, Workspace w
) noexcept nogil
