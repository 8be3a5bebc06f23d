from libc.math cimport isnan, sqrt
from orcast.committee.spread cimport sort
from orcast.kernels.ledger cimport miscalibration
from orcast.kernels.rounds cimport log_round, predict_round, update_round
from orcast.kernels.rows cimport (
    Row, WholeRow, Workspace, copy, cut, mark, numbers_of, release, take, whole_of, workspace
)
from orcast.kernels.state cimport (
    CERTIFICATE_SIZE, INFO_SIZE, ROUND_LOG_SIZE, Account, Certificate, Counters, Memory, Round, Rules, as_account,
    as_certificate, as_counters, as_log, attach
)

cdef double LAG_RATE
cdef Py_ssize_t PREDICT, SETTLE

cdef class Stream:
    cdef readonly Rules rules
    cdef Round round
    cdef readonly Py_ssize_t capacity, entries, new, set_width
    cdef readonly object quantiles, round_log, settled, counters, records, place, queue, free, issued
    cdef object kept, kept_whole
    cdef Row values_, experts_, priors_, contexts_, levels_, quantiles_, round_log_, settled_, issued_, records_
    cdef Counters *counters_
    cdef WholeRow widths_, level_set_, place_, queue_, free_
    cpdef object run(self, Memory memory, object events)

cdef Certificate * certificate_of(Rules, Stream, Py_ssize_t) noexcept nogil
cdef double promised_bound(Account *, Row, Py_ssize_t, double, double, double) noexcept nogil
cdef double promised_with(Rules, Memory, Stream, Round, Workspace) noexcept nogil
cpdef double promised(object, object, object) except? -1.0
cdef void reserve_place(Rules, Stream, Py_ssize_t) noexcept nogil
cdef void remove_entry(Stream, Py_ssize_t, double) noexcept nogil
cdef void learn_lag(Stream, Py_ssize_t) noexcept nogil
cdef void predict_entry(Rules, Memory, Stream, Py_ssize_t, Workspace) noexcept nogil
cdef void run_event(Rules, Memory, Stream, Py_ssize_t, Py_ssize_t, Workspace) noexcept nogil
