from libc.math cimport exp, log, sqrt
from orcast.kernels.cells cimport log_masses, mean_of
from orcast.kernels.equilibrium cimport field_tables, solve
from orcast.kernels.judging cimport allow_resolution, judge, keep_if_better, level_ledger, new_workspace, regret_units
from orcast.kernels.rows cimport Row, Workspace, copy, cut, mark, real_power, release, take
from orcast.kernels.state cimport Layout, Memory, Round, Rules, Statistics, cell_count, part_at, rival_at

cdef double CHANCE, FAULT, FEW, CLEAR_FAULT, LEAST_FIRM, FIRM, LEAST_SOFT, CLOSEST_RATIO, DELAY_TEMPERATURE, EASY, LOWEST
cdef double PROXIMAL_FALL, LEAST_PRIOR, BARELY, LEAST_SHARE, STRICT, TRUSTED
cdef Py_ssize_t PROXIMAL_STEPS, CONTINUATION, EASY_STEPS, STRICT_STEPS

cdef void pull_crps(double, Py_ssize_t, Round, Row, Workspace) noexcept nogil
cdef void pull_mse(double, Py_ssize_t, Round, Row, Workspace) noexcept nogil
cdef void prepare(Rules, double, double, Round, Workspace) noexcept nogil
cdef double equilibrium(Rules, double, double, Round, Row, double, Py_ssize_t, Workspace) noexcept nogil
cdef double solve_strictly(Rules, double, Round, Row, Row, Workspace) noexcept nogil
cdef void descend(Rules, Memory, double, Round, Row, Workspace) noexcept nogil
cdef double expert_fault(Rules, Row) noexcept nogil
cdef double gain_of(Rules, Memory) noexcept nogil
cdef double chance_softness(Statistics *, double, double, double, double) noexcept nogil
cdef double used_share(Layout, Memory, Row, double) noexcept nogil
cdef void first_solution(Rules, Memory, Round, Row, Workspace) noexcept nogil
cdef void try_ends(Rules, Memory, Round, Workspace) noexcept nogil
cdef void other_prior(Py_ssize_t, Py_ssize_t, Round, Row) noexcept nogil
cdef void try_priors(Rules, Memory, Round, Row, Workspace) noexcept nogil
cdef void step_by_step(Rules, Memory, Round, Row, Workspace) noexcept nogil
cdef void search(Rules, Memory, bint, Round, Row, Workspace) noexcept nogil
cdef void run_rounds(Rules, Memory, Row, double, bint, Round, Workspace) noexcept nogil
