cimport cython
from libc.math cimport log
from libc.stdint cimport uint64_t
from orcast.kernels.rows cimport Row, WholeRow, cut, numbers_of, readable_of, whole_of

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

@cython.locals(row=Row, lane=Row)
cpdef object start_lanes(Bets bets, object state, Py_ssize_t first)
cdef uint64_t mixed(uint64_t z) noexcept nogil
cdef double draw_of(uint64_t start, uint64_t number) noexcept nogil
cdef Row lane_of(Bets bets, Row row, Py_ssize_t i) noexcept nogil
cdef Row detector_of(Bets bets, Row lane) noexcept nogil
cdef double total(Row row, Py_ssize_t count) noexcept nogil
@cython.locals(i=Py_ssize_t)
cdef Py_ssize_t cell(Bets bets, double u) noexcept nogil
@cython.locals(i=Py_ssize_t)
cdef void read_point(Bets bets, double u, Row out) noexcept nogil
@cython.locals(i=Py_ssize_t)
cdef void add_area(Bets bets, double u, double factor, Row out) noexcept nogil
cdef void read_bets(Bets bets, double low, double high, Row out) noexcept nogil
@cython.locals(corner=Py_ssize_t, low=double, high=double, k=Py_ssize_t)
cdef void take_least(Bets bets, Row pit, Row g, Row other) noexcept nogil
cdef double share_inside(Bets bets, double low, double high) noexcept nogil
@cython.locals(first=Py_ssize_t, last=Py_ssize_t, k=Py_ssize_t)
cdef double follow(Bets bets, Row starts, Row g, Row scores, double inside) noexcept nogil
@cython.locals(found=Py_ssize_t, group=Py_ssize_t)
cdef double name_kind(Bets bets, Row starts, Row sums) noexcept nogil
cdef void describe(Bets bets, Row row, Row g, double inside, double now) noexcept nogil
cdef void bet(Bets bets, Row lane, Row g) noexcept nogil
@cython.locals(i=Py_ssize_t, place=Py_ssize_t)
cdef double rank(Bets bets, Row lane, double u, double draw) noexcept nogil
cdef double lane_evidence(Bets bets, Row lane, bint pending) noexcept nogil
cdef double new_evidence(Bets bets, bint pending) noexcept nogil
cdef double lane_change(Bets bets, Row lane, bint pending) noexcept nogil
cdef Py_ssize_t free_lane(Bets bets, Row row, Py_ssize_t lanes, double issued) noexcept nogil
cdef void close_change(Bets bets, Row row, Py_ssize_t lanes, double now) noexcept nogil
@cython.locals(used=Py_ssize_t, pending=bint, outstanding=bint, number=Py_ssize_t, rest=Py_ssize_t)
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
    @cython.locals(n=double, pit=Row)
    cpdef object step(self, double u)
    @cython.locals(lanes=Py_ssize_t)
    cdef object put(self, Row pit, double issued, double clock)
    @cython.locals(ends=Row, kept=Row, number=Py_ssize_t)
    cpdef object run(self, object pits, object trace)
    @cython.locals(
        kinds=WholeRow, ends=Row, since=Row, found=Row, number=Py_ssize_t, at=Py_ssize_t
    )
    cpdef object follow_events(self, object events, object pits, object issued, double count, object codes)

@cython.locals(scratch=Row, row=Row, lanes=Py_ssize_t, start=uint64_t)
cdef void put_round(Watcher watcher, Row pit, double issued, double clock) noexcept nogil
@cython.locals(numbers=Row, count=Py_ssize_t, rounds=Py_ssize_t, watcher=Watcher, pit=Row)
cpdef object watch(list watchers, object pits, double issued, double clock)
