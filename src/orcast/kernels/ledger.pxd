from libc.math cimport fabs, sqrt
from orcast.kernels.rows cimport Row, numbers_of, readable_of
from orcast.kernels.state cimport (
    Account, Certificate, GroupAccount, Layout, Part, as_account, as_certificate, as_group_accounts, group_account_at,
    part_at
)

cdef double ROUNDING

cdef double squared_norm(Layout, Row) noexcept nogil
cdef void combine(Layout, Row, Row, double, Row, Row, Py_ssize_t) noexcept nogil
cdef double squared_payoff(Layout, Row, Row) noexcept nogil
cdef double rarest_group(Layout, Account *, GroupAccount *, Row) noexcept nogil
cdef double available_slack(Layout, Account *, GroupAccount *, Row, double, Row, double, double) noexcept nogil
cdef void write_certificate(Account *, double, double, double, double, double, double, Certificate *) noexcept nogil
cdef void forget(Layout, Account *, GroupAccount *, Row, double) noexcept nogil
cdef void settle(Layout, Account *, GroupAccount *, Row, Row, double, double, Row, Certificate *) noexcept nogil
cdef double mean_size(double, Account *) noexcept nogil

cpdef double squared_norm_arrays(Layout, object) except? -1.0
cpdef object combine_arrays(Layout, object, object, double, object, object)
cpdef double available_slack_arrays(Layout, object, object, object, double, object, double, double) except? -1.0
cpdef object write_certificate_arrays(object, double, double, double, double, double, double, object)
cpdef object settle_arrays(Layout, object, object, object, object, double, double, object, object)
