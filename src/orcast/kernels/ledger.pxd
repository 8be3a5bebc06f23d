from libc.math cimport fabs, sqrt
from orcast.kernels.rows cimport Row, numbers_of, readable_of
from orcast.kernels.state cimport Certificate, Layout, LedgerState, Part, as_certificate, group_account_at, part_at

cdef double ROUNDING

cpdef double squared_norm(LedgerState) noexcept nogil
cdef void combine(LedgerState, Row, Row, Row, Py_ssize_t) noexcept nogil
cdef double squared_payoff(Layout, Row, Row) noexcept nogil
cdef double rarest_group(LedgerState, Row) noexcept nogil
cdef double available_slack(LedgerState, double, Row, double) noexcept nogil
cdef void write_certificate(LedgerState, double, double, double, double, Certificate *) noexcept nogil
cdef void forget(LedgerState) noexcept nogil
cdef void settle(LedgerState, Row, double, Row, Certificate *) noexcept nogil
cpdef double miscalibration(LedgerState) noexcept nogil

cpdef object combine_arrays(LedgerState, object, object, object)
cpdef double available_slack_arrays(LedgerState, double, object, double) except? -1.0
cpdef object write_certificate_arrays(LedgerState, double, double, double, double, object)
cpdef object settle_arrays(LedgerState, object, double, object, object)
