cimport cython
from libc.math cimport log
from libc.stdint cimport uint64_t
from orcast.kernels.rows cimport Row, cut, numbers_of, readable_of, whole_number, whole_of

cdef Py_ssize_t ROUNDS, ALARM, EVIDENCE, CHANGE_EVIDENCE, SKIPPED, PEAK, PEAK_END, PEAK_KIND, PEAK_SUMS
cdef Py_ssize_t CHANGES, CHANGE_AT, CHANGE_KIND, CHANGE_SUMS, HEAD, ENDS, COUNT, INSIDE, SCORE, SQUARE, SUMS
cdef Py_ssize_t CLOCK, OWN, RANKED, LANE_HEAD
cdef Py_ssize_t KINDS, PREDICT, SETTLE
cdef double NARROWEST, LOCKED, LOG3, LARGEST, SCALED, ENDED, TOO_LOW, TOO_HIGH, TOO_NARROW
cdef uint64_t ALL, STEP, FIRST_FACTOR, SECOND_FACTOR

cdef class Bets:
    cdef readonly object kept
    cdef Row table, areas, prior, least, kinds, groups, bins, lanes
    cdef readonly Py_ssize_t count, knots, lane_count, width, group_count, bin_count, starts, lane_size
    cdef readonly double spread, outside
    cdef readonly bint signed
    cpdef Py_ssize_t size(self, Py_ssize_t lanes)
    cpdef Py_ssize_t lanes_in(self, Py_ssize_t size)

cpdef object start_lanes(Bets bets, object state, Py_ssize_t first)
cdef uint64_t mixed(uint64_t z) noexcept nogil
cdef double draw_of(uint64_t start, uint64_t number) noexcept nogil
cdef Row lane_of(Bets bets, Row row, Py_ssize_t i) noexcept nogil
cdef Row detector_of(Bets bets, Row lane) noexcept nogil
cdef double total(Row row, Py_ssize_t count) noexcept nogil
cdef Py_ssize_t cell(Bets bets, double u) noexcept nogil
cdef void read_point(Bets bets, double u, Row out) noexcept nogil
cdef void add_area(Bets bets, double u, double factor, Row out) noexcept nogil
cdef void read_bets(Bets bets, double low, double high, Row out) noexcept nogil
cdef void take_least(Bets bets, Row pit, Row g, Row other) noexcept nogil
cdef double share_inside(Bets bets, double low, double high) noexcept nogil
cdef double follow(Bets bets, Row starts, Row g, Row scores, double inside) noexcept nogil
cdef double name_kind(Bets bets, Row starts, Row sums) noexcept nogil
cdef void describe(Bets bets, Row row, Row g, double inside, double now) noexcept nogil
cdef void bet(Bets bets, Row lane, Row g) noexcept nogil
cdef double rank(Bets bets, Row lane, double u, double draw) noexcept nogil
cdef double lane_evidence(Bets bets, Row lane, bint pending) noexcept nogil
cdef double new_evidence(Bets bets, bint pending) noexcept nogil
cdef double lane_change(Bets bets, Row lane, bint pending) noexcept nogil
cdef Py_ssize_t free_lane(Bets bets, Row row, Py_ssize_t lanes, double issued) noexcept nogil
cdef void close_change(Bets bets, Row row, Py_ssize_t lanes, double now) noexcept nogil
@cython.locals(pending=bint, outstanding=bint)
cdef void update_stream(
    Bets bets, Row row, Py_ssize_t lanes, Row pit, uint64_t start, double issued, double clock,
    double ever, double change, Row scratch
) noexcept nogil

cdef double code_of(Bets bets, Row row) noexcept nogil

cdef class Watcher:
    cdef readonly Bets bets
    cdef readonly object state, scratch
    cdef Row row, scratch_row
    cdef readonly double ever, change, delay
    cdef readonly uint64_t start
    cdef readonly Py_ssize_t lanes
    cpdef object take(self, object state)
    cpdef object step(self, double u)
    cdef object put(self, Row pit, double issued, double clock)
    cpdef object run(self, object pits, object trace)
    cpdef object follow_events(self, object events, object pits, object issued, double count, object codes)

cdef void put_round(Watcher watcher, Row pit, double issued, double clock) noexcept nogil
@cython.locals(watcher=Watcher)
cpdef object watch(list watchers, object pits, double issued, double clock)
