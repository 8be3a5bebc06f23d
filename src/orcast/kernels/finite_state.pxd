from orcast.kernels.rows cimport Row, cut, numbers_of
from orcast.kernels.state cimport Counts, Layout, LedgerState, Record, as_counts, attach_record, numbers_in

cdef Py_ssize_t FEATURES

cdef struct FiniteRival:
    double brier, count, excess, rounds
cdef struct FiniteMember:
    double discount, features, shifts
cdef struct CellFeatures:
    double log_mass, one, skew, outcome, before, error, mean, mean_error

cdef inline FiniteRival *as_finite_rivals(Row row) noexcept nogil: return <FiniteRival *> row
cdef inline FiniteRival *finite_rival_at(FiniteRival *items, Py_ssize_t i) noexcept nogil: return items + i
cdef inline FiniteMember *as_finite_members(Row row) noexcept nogil: return <FiniteMember *> row
cdef inline FiniteMember *finite_member_at(FiniteMember *items, Py_ssize_t i) noexcept nogil: return items + i
cdef inline CellFeatures *as_cell_features(Row row) noexcept nogil: return <CellFeatures *> row

cdef class FiniteRules:
    cdef readonly Layout layout
    cdef readonly dict options, round_places
    cdef readonly object row, grid
    cdef Row nodes
    cdef FiniteMember *members
    cdef readonly Py_ssize_t cells, events, hats, expert_hats, bias, regret, rivals, groups, two_cells, moved, drawn
    cdef readonly Py_ssize_t first, member_count, rows, payoff_size, round_size
    cdef readonly double brier, discount, temperature

cdef class FiniteState(LedgerState):
    cdef readonly FiniteRules rules
    cdef FiniteRival *rivals
    cdef Row last, warm, regret, square, theta, curvature, shift, shift_curvature, errors, outcomes, observed, empirical
    cdef Counts *counts

cdef class FiniteRound(Record):
    cdef readonly FiniteRules rules
    cdef Row experts, units, pool, prior, result, inputs, members
    cdef object attach(self)
    cpdef double probability(self, Py_ssize_t k)
