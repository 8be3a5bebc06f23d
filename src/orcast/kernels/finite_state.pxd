cimport cython
from orcast.kernels.rows cimport Workspace, copy, cut, numbers_of, workspace
from orcast.kernels.state cimport Account, Certificate, Counts, GroupAccount, Layout, as_account, as_certificate
from orcast.kernels.state cimport as_counts, as_group_accounts

cdef Py_ssize_t FINITE_INFO_SIZE, CERTIFICATE_SIZE, FEATURES

cdef struct FiniteInfo:
    double pending, temperature, has_expert, odds, draw, variance
cdef struct FiniteRival:
    double brier, count, excess, rounds
cdef struct FiniteMember:
    double discount, features, shifts
cdef struct CellFeatures:
    double log_mass, one, skew, outcome, before, error, mean, mean_error

cdef inline FiniteInfo *as_finite_info(double *row) noexcept nogil:
    return <FiniteInfo *> row
cdef inline FiniteRival *as_finite_rivals(double *row) noexcept nogil:
    return <FiniteRival *> row
cdef inline FiniteRival *finite_rival_at(FiniteRival *items, Py_ssize_t i) noexcept nogil:
    return items + i
cdef inline FiniteMember *as_finite_members(double *row) noexcept nogil:
    return <FiniteMember *> row
cdef inline FiniteMember *finite_member_at(FiniteMember *items, Py_ssize_t i) noexcept nogil:
    return items + i
cdef inline CellFeatures *as_cell_features(double *row) noexcept nogil:
    return <CellFeatures *> row

cdef extern from "Python.h":
    char *PyByteArray_AsString(object memory) except NULL

cdef inline double *pointer_to(object memory) except NULL:
    return <double *> PyByteArray_AsString(memory)
cdef double *numbers_in(object memory) except NULL

cdef class FiniteRules:
    cdef readonly Layout layout
    cdef readonly dict options, state_places, round_places
    cdef readonly object row, grid
    cdef double *nodes
    cdef FiniteMember *members
    cdef readonly Py_ssize_t cells, events, hats, expert_hats, bias, regret, rivals, groups, two_cells, moved, drawn
    cdef readonly Py_ssize_t first, member_count, rows, payoff_size, state_size, round_size
    cdef readonly double brier, bound, discount, temperature

cdef class FiniteState:
    cdef readonly FiniteRules rules
    cdef readonly object row
    cdef double *numbers
    cdef double *total
    cdef Account *account
    cdef GroupAccount *groups
    cdef FiniteRival *rivals
    cdef double *last
    cdef double *warm
    cdef double *regret
    cdef double *square
    cdef double *theta
    cdef double *curvature
    cdef double *shift
    cdef double *shift_curvature
    cdef double *errors
    cdef double *outcomes
    cdef double *observed
    cdef double *empirical
    cdef Counts *counts

cdef class FiniteRound:
    cdef readonly FiniteRules rules
    cdef object memory, array
    cdef double *numbers
    cdef FiniteInfo *info
    cdef Certificate *certificate
    cdef double *context
    cdef double *experts
    cdef double *units
    cdef double *pool
    cdef double *prior
    cdef double *result
    cdef double *inputs
    cdef double *members
    @cython.locals(at=Py_ssize_t, row="double *", size=Py_ssize_t)
    cdef object attach(self)
    cpdef FiniteRound copied(self)
    cpdef double overdraft(self)
    cpdef bint holds(self)
    cpdef double draw(self)
    cpdef object set_draw(self, double draw)
    cpdef double probability(self, Py_ssize_t k)

cpdef FiniteRound restored_finite_round(FiniteRules rules, object row)

cdef class FiniteGame:
    cdef Workspace w
    cdef Py_ssize_t cells, first, events, vertices, rivals, drawn
    cdef double *nodes
    cdef double *cumulative
    cdef double *fixed
    cdef double *fixed_size
    cdef double *cumulative_regret
    cdef double *experts
    cdef double *units
    cdef double *prior
    cdef double hat_factor, regret_factor, brier, odds

cpdef FiniteGame finite_recal()
