cimport cython
from libc.math cimport isnan, sqrt
from orcast.committee.spread cimport sort
from orcast.kernels.rounds cimport log_round, miscalibration, predict_round, update_round
from orcast.kernels.rows cimport (
    Row, WholeRow, Workspace, copy, cut, cut_whole, mark, numbers_of, release, take, whole_of, workspace
)
from orcast.kernels.state cimport (
    CERTIFICATE_SIZE, ROUND_LOG_SIZE, Account, Certificate, Counters, Memory, Round, Rules, as_account, as_certificate,
    as_counters, as_log, attach
)

cdef double LAG_RATE
cdef Py_ssize_t PREDICT, SETTLE

cdef class Stream:
    cdef readonly Rules rules
    cdef Round round
    cdef readonly Py_ssize_t capacity, entries, new, set_width
    cdef bint has_draws
    cdef double first
    cdef readonly object quantiles, round_log, settled, counters, records, slots, place, queue, free, issued
    cdef object kept, kept_whole
    cdef Row values_, experts_, priors_, contexts_, levels_, draws_, quantiles_, round_log_, settled_, issued_, records_
    cdef Counters *counters_
    cdef WholeRow widths_, level_set_, slots_, place_, queue_, free_
    cpdef object run(self, Memory memory, object events)

cdef Certificate *certificate_of(Rules rules, Stream stream, Py_ssize_t place) noexcept nogil
cdef double promised_bound(
    Account *account, Row growth, Py_ssize_t count, double root, double bound, double promised
) noexcept nogil
cdef double promised_with(Rules rules, Memory memory, Stream stream, Round round, Workspace w) noexcept nogil
cpdef double promised(object account, object certificates, object certificate) except? -1.0
cdef void reserve_place(Rules rules, Stream stream, Py_ssize_t entry) noexcept nogil
cdef void bind(Rules rules, Stream stream, Py_ssize_t place) noexcept nogil
cdef void remove_entry(Stream stream, Py_ssize_t entry, double overdraft) noexcept nogil
cdef void learn_lag(Stream stream, Py_ssize_t entry) noexcept nogil
cdef void predict_entry(Rules rules, Memory memory, Stream stream, Py_ssize_t entry, Workspace w) noexcept nogil
cdef void run_event(
    Rules rules, Memory memory, Stream stream, Py_ssize_t kind, Py_ssize_t entry, Workspace w
) noexcept nogil
