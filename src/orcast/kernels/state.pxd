from orcast.kernels.rows cimport Row, WholeRow, cut, cut_whole, int64_t, numbers_of, whole_of

cdef enum:
    CELL_ROWS = 6
cdef Py_ssize_t INFO_SIZE, CERTIFICATE_SIZE, ROUND_LOG_SIZE

cdef struct Account:
    double budget, rounds, held, excess, roots, delay, weight
cdef struct GroupAccount:
    double budget, count, excess
cdef struct Certificate:
    double worst, overdraft, bound, allowed, holds, root, roots_then, rounds_then, promised, excess
cdef struct Counts:
    double spread, weight, without
cdef struct Info:
    double pending, has_expert, temperature, draw, cells, low, high, variance
cdef struct Rival:
    double crps, squared_error, count, crps_excess, mse_excess, rounds
cdef struct Statistics:
    double outcomes, loss_sum, loss_count, robust_loss, last_error, level_mean, level_variance, squares
cdef struct Counters:
    double issued, lag, reserved, error_sum, error_count
cdef struct RoundLog:
    double holds, promised, miscalibration, mean, sd, excess
cdef struct Part:
    int64_t start, size, groups, places, context, one_sided

cdef inline Account *as_account(Row row) noexcept nogil: return <Account *> row
cdef inline GroupAccount *as_group_accounts(Row row) noexcept nogil: return <GroupAccount *> row
cdef inline GroupAccount *group_account_at(GroupAccount *items, Py_ssize_t i) noexcept nogil: return items + i
cdef inline Certificate *as_certificate(Row row) noexcept nogil: return <Certificate *> row
cdef inline Counts *as_counts(Row row) noexcept nogil: return <Counts *> row
cdef inline Info *as_info(Row row) noexcept nogil: return <Info *> row
cdef inline Rival *as_rivals(Row row) noexcept nogil: return <Rival *> row
cdef inline Rival *rival_at(Rival *items, Py_ssize_t i) noexcept nogil: return items + i
cdef inline Statistics *as_statistics(Row row) noexcept nogil: return <Statistics *> row
cdef inline Counters *as_counters(Row row) noexcept nogil: return <Counters *> row
cdef inline RoundLog *as_log(Row row) noexcept nogil: return <RoundLog *> row
cdef inline Part *as_parts(WholeRow row) noexcept nogil: return <Part *> row
cdef inline Part *part_at(Part *items, Py_ssize_t i) noexcept nogil: return items + i

cdef extern from "Python.h":
    char *PyByteArray_AsString(object memory) except NULL

cdef inline Row pointer_to(object memory) except NULL: return <double *> PyByteArray_AsString(memory)
cdef Row numbers_in(object) except NULL

cdef class Table:
    cdef readonly dict places

cdef class Layout:
    cdef readonly object part_table, place_list, scales, bound_list, side_list, whole, row
    cdef readonly Py_ssize_t count, size, groups
    cdef readonly double general, discount
    cdef Part *parts
    cdef WholeRow places
    cdef Row scale, bounds, sides

cdef class LedgerState(Table):
    cdef readonly Layout layout
    cdef readonly object row
    cdef Row numbers, total
    cdef Account *account
    cdef GroupAccount *groups
    cdef Row part(self, str name) except NULL

cdef class Rules:
    cdef readonly Layout layout
    cdef readonly dict options, round_places
    cdef readonly object row, whole
    cdef Row grid, jumps, levels
    cdef WholeRow intervals
    cdef readonly Py_ssize_t grid_count, jump_count, level_count, interval_count, learns
    cdef readonly Py_ssize_t cells, tail_cells, experts, groups, group_at, group_count, orders, crps, mse
    cdef readonly Py_ssize_t capacity, rival_rows, payoff_size, round_size
    cdef readonly double low, high, discount, temperature
    cdef readonly bint open_low, open_high

cdef class Memory(LedgerState):
    cdef readonly Rules rules
    cdef Row empirical, warm, misses, by_group
    cdef Counts *counts
    cdef Statistics *statistics
    cdef Rival *rivals

cdef class Record(Table):
    cdef object memory, array
    cdef public object memo
    cdef Row numbers, context
    cdef Info *info
    cdef Certificate *certificate
    cpdef double overdraft(self)
    cpdef double draw(self)
    cpdef object set_draw(self, double draw)

cdef class Round(Record):
    cdef readonly Rules rules
    cdef Row cells, left, right, prior, expert, result, tilt, experts, before, rivals, crps_units, mse_units, expected
    cpdef Py_ssize_t count(self)

cdef Py_ssize_t attach_record(Record, Row, Py_ssize_t) noexcept nogil
cdef void attach(Rules, Round, Row) noexcept nogil
cdef inline Py_ssize_t cell_count(Round round) noexcept nogil: return <Py_ssize_t> round.info.cells
