cimport cython
from libc.math cimport log
from libc.stdint cimport uint64_t
from orcast.kernels.rows cimport WholeRow, cut, numbers_of, readable_of, whole_of

cdef Py_ssize_t ROUNDS, ALARM, EVIDENCE, CHANGE_EVIDENCE, SKIPPED, PEAK, PEAK_END, PEAK_KIND, PEAK_SUMS
cdef Py_ssize_t CHANGES, CHANGE_AT, CHANGE_KIND, CHANGE_SUMS, HEAD, ENDS, COUNT, INSIDE, SCORE, SQUARE, SUMS
cdef Py_ssize_t CLOCK, OWN, RANKED, LANE_HEAD
cdef Py_ssize_t KINDS, PREDICT, SETTLE
cdef double NARROWEST, LOCKED, LOG3, LARGEST, SCALED, ENDED, TOO_LOW, TOO_HIGH, TOO_NARROW
cdef uint64_t ALL, STEP, FIRST_FACTOR, SECOND_FACTOR

cdef class Bets:
    cdef readonly object kept
    cdef double *table
    cdef double *areas
    cdef double *prior
    cdef double *least
    cdef double *kinds
    cdef double *groups
    cdef double *bins
    cdef double *lanes
    cdef readonly Py_ssize_t count, knots, lane_count, width, group_count, bin_count, starts, lane_size
    cdef readonly double spread, outside
    cdef readonly bint signed
    cpdef Py_ssize_t size(self, Py_ssize_t lanes)
    cpdef Py_ssize_t lanes_in(self, Py_ssize_t size)

@cython.locals(row="double *", lane="double *")
cpdef object start_lanes(Bets bets, object state, Py_ssize_t first)
cdef uint64_t mixed(uint64_t z) noexcept nogil
cdef double draw_of(uint64_t start, uint64_t number) noexcept nogil
cdef double *lane_of(Bets bets, double *row, Py_ssize_t i) noexcept nogil
cdef double *detector_of(Bets bets, double *lane) noexcept nogil
cdef double total(double *row, Py_ssize_t count) noexcept nogil
@cython.locals(i=Py_ssize_t)
cdef Py_ssize_t cell(Bets bets, double u) noexcept nogil
@cython.locals(i=Py_ssize_t)
cdef void read_point(Bets bets, double u, double *out) noexcept nogil
@cython.locals(i=Py_ssize_t)
cdef void add_area(Bets bets, double u, double factor, double *out) noexcept nogil
cdef void read_bets(Bets bets, double low, double high, double *out) noexcept nogil
@cython.locals(corner=Py_ssize_t, low=double, high=double, k=Py_ssize_t)
cdef void take_least(Bets bets, double *pit, double *g, double *other) noexcept nogil
cdef double share_inside(Bets bets, double low, double high) noexcept nogil
@cython.locals(first=Py_ssize_t, last=Py_ssize_t, k=Py_ssize_t)
cdef double follow(Bets bets, double *starts, double *g, double *scores, double inside) noexcept nogil
@cython.locals(found=Py_ssize_t, group=Py_ssize_t)
cdef double name_kind(Bets bets, double *starts, double *sums) noexcept nogil
cdef void describe(Bets bets, double *row, double *g, double inside, double now) noexcept nogil
cdef void bet(Bets bets, double *lane, double *g) noexcept nogil
@cython.locals(i=Py_ssize_t, place=Py_ssize_t)
cdef double rank(Bets bets, double *lane, double u, double draw) noexcept nogil
cdef double lane_evidence(Bets bets, double *lane, bint pending) noexcept nogil
cdef double new_evidence(Bets bets, bint pending) noexcept nogil
cdef double lane_change(Bets bets, double *lane, bint pending) noexcept nogil
cdef Py_ssize_t free_lane(Bets bets, double *row, Py_ssize_t lanes, double issued) noexcept nogil
cdef void close_change(Bets bets, double *row, Py_ssize_t lanes, double now) noexcept nogil
@cython.locals(used=Py_ssize_t, pending=bint, outstanding=bint, number=Py_ssize_t, rest=Py_ssize_t)
cdef void update_stream(
    Bets bets, double *row, Py_ssize_t lanes, double *pit, uint64_t start, double issued, double clock,
    double ever, double change, double *scratch
) noexcept nogil

cdef double code_of(Bets bets, double *row) noexcept nogil

cdef class Watcher:
    cdef readonly Bets bets
    cdef readonly object state, scratch
    cdef double *row
    cdef double *scratch_row
    cdef readonly double ever, change, delay
    cdef readonly uint64_t start
    cdef readonly Py_ssize_t lanes
    cpdef object take(self, object state)
    @cython.locals(n=double, pit="double *")
    cpdef object step(self, double u)
    @cython.locals(lanes=Py_ssize_t)
    cdef object put(self, double *pit, double issued, double clock)
    @cython.locals(ends="double *", kept="double *", number=Py_ssize_t)
    cpdef object run(self, object pits, object trace)
    @cython.locals(
        kinds=WholeRow, ends="double *", since="double *", found="double *", number=Py_ssize_t, at=Py_ssize_t
    )
    cpdef object follow_events(self, object events, object pits, object issued, double count, object codes)

@cython.locals(scratch="double *", row="double *", lanes=Py_ssize_t, start=uint64_t)
cdef void put_round(Watcher watcher, double *pit, double issued, double clock) noexcept nogil
@cython.locals(numbers="double *", count=Py_ssize_t, rounds=Py_ssize_t, watcher=Watcher, pit="double *")
cpdef object watch(list watchers, object pits, double issued, double clock)
