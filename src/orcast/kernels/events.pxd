cimport cython
from libc.math cimport isnan, sqrt
from orcast.kernels.rounds cimport log_round, miscalibration, predict_round, update_round
from orcast.committee.spread cimport sort
from orcast.kernels.rows cimport (
    Workspace, copy, cut, cut_whole, int64_t, mark, numbers_of, release, take, whole_of, workspace
)
from orcast.kernels.state cimport (
    CERTIFICATE_SIZE, ROUND_LOG_SIZE, Account, Certificate, Counters, Memory, Round, RoundLog, Rules, as_account, as_certificate,
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
    cdef double *values_
    cdef double *experts_
    cdef double *priors_
    cdef double *contexts_
    cdef double *levels_
    cdef double *draws_
    cdef double *quantiles_
    cdef double *round_log_
    cdef double *settled_
    cdef double *issued_
    cdef double *records_
    cdef Counters *counters_
    cdef int64_t *widths_
    cdef int64_t *level_set_
    cdef int64_t *slots_
    cdef int64_t *place_
    cdef int64_t *queue_
    cdef int64_t *free_
    cpdef object run(self, Memory memory, object events)

cdef Certificate *certificate_of(Rules rules, Stream stream, Py_ssize_t place) noexcept nogil
cdef double promised_bound(
    Account *account, double *growth, Py_ssize_t count, double root, double bound, double promised
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
