from libc.math cimport fabs, sqrt
from orcast.kernels.rows cimport Row, numbers_of, readable_of
from orcast.kernels.state cimport (
    Account, Certificate, GroupAccount, Layout, Part, as_account, as_certificate, as_group_accounts, group_account_at,
    part_at
)

cdef double ROUNDING

cdef double squared_norm(Layout layout, Row total) noexcept nogil
cdef void combine(
    Layout layout, Row total, Row context, double discount, Row cumulative, Row factors, Py_ssize_t size
) noexcept nogil
cdef double squared_payoff(Layout layout, Row context, Row payoff) noexcept nogil
cdef double rarest_group(Layout layout, Account *account, GroupAccount *groups, Row context) noexcept nogil
cdef double available_slack(
    Layout layout, Account *account, GroupAccount *groups, Row total, double square, Row context, double discount,
    double reserved
) noexcept nogil
cdef void write_certificate(
    Account *account, double discount, double square, double free, double linear, double bound, double general,
    Certificate *certificate
) noexcept nogil
cdef void forget(Layout layout, Account *account, GroupAccount *groups, Row total, double discount) noexcept nogil
cdef void settle(
    Layout layout, Account *account, GroupAccount *groups, Row total, Row context, double discount, double reserved,
    Row payoff, Certificate *certificate
) noexcept nogil
cdef double mean_size(double square, Account *account) noexcept nogil

cpdef double squared_norm_arrays(Layout layout, object total) except? -1.0
cpdef object combine_arrays(
    Layout layout, object total, object context, double discount, object cumulative, object factors
)
cpdef double available_slack_arrays(
    Layout layout, object account, object groups, object total, double square, object context, double discount,
    double reserved
) except? -1.0
cpdef object write_certificate_arrays(
    object account, double discount, double square, double free, double linear, double bound, double general,
    object certificate
)
cpdef object settle_arrays(
    Layout layout, object account, object groups, object total, object context, double discount, double reserved,
    object payoff, object certificate
)
