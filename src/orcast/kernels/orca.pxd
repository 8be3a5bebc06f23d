cimport cython
from libc.math cimport exp, fabs, sqrt
from orcast.kernels.rows cimport Workspace, cut, mark, numbers_of, release, take, workspace

cdef double TINY_MASS, TIED, INF

cdef class QuantileTables:
    cdef list given
    cdef Py_ssize_t count, nodes
    cdef double *levels
    cdef double *knots
    cdef double *slopes
    cdef double *places
    cdef double *values
    cdef double *heights

cdef class ExpertTables:
    cdef list given
    cdef Py_ssize_t count
    cdef double *masses
    cdef double *crps
    cdef double *owed
    cdef double *usual

cdef class OrcaProblem:
    cdef list given
    cdef readonly Py_ssize_t cells, components
    cdef double *width
    cdef double *middle
    cdef double *ends
    cdef double *pull
    cdef double *pull_at
    cdef QuantileTables quantiles
    cdef ExpertTables experts
    cdef double *nature
    cdef bint at_centre, smooth
    cdef double temperature

cdef class AdamRates:
    cdef readonly double rate, first, second, safe

cdef void crps_means(Py_ssize_t n, double *width, double *mass, double *out) noexcept nogil
cdef void crps_centres(Py_ssize_t n, double *width, double *mass, double *out) noexcept nogil
cdef double largest_gap(Py_ssize_t n, double *width, double *mass, double *other) noexcept nogil
cdef double weighted_sum(Py_ssize_t n, double *weights, double *values) noexcept nogil
cdef (double, double) softmax(
    Py_ssize_t n, double *log_masses, double *pull, double *middle, double *out) noexcept nogil
cdef (double, double, double, double) regret_weights(
    Py_ssize_t n, ExpertTables experts, double *width, double *middle, double *ends, double *p, double mean,
    double *expert_crps) noexcept nogil
cdef void add_crps_field(
    Py_ssize_t n, double *width, bint at_centre, double *p, double factor, double *expert_crps, double *score,
    double *field) noexcept nogil
cdef void add_mse_field(
    Py_ssize_t n, double *middle, double mean, double mse, double expert_mean, double expert_square,
    double *field) noexcept nogil
cdef void quantile_field(
    Py_ssize_t n, QuantileTables quantiles, bint smooth, double *p, double *part, double *slope,
    double *field) noexcept nogil
cdef double worst_case(
    Py_ssize_t n, double *nature, Py_ssize_t components, double *field, double *reach) noexcept nogil
cdef void cell_weights(
    Py_ssize_t n, double *nature, Py_ssize_t components, double *field, double *reach, double temperature,
    double *out) noexcept nogil
cdef void add_quantile_gradient(
    Py_ssize_t n, double *p, double *weights, double *part, double *slope, double *by_edge) noexcept nogil
cdef void add_crps_gradient(
    Py_ssize_t n, double *width, bint at_centre, double *p, double *weights, double factor,
    double *by_edge) noexcept nogil
cdef void log_mass_gradient(
    Py_ssize_t n, double *pull, double *middle, double *p, double mean, double mse, double *weights, double *by_edge,
    double *out) noexcept nogil
cdef void adam_step(
    Py_ssize_t n, AdamRates adam, double first_left, double second_left, double *gradient, double *first,
    double *second, double *parameters) noexcept nogil
cdef double descend(
    OrcaProblem problem, double *log_masses, AdamRates adam, Py_ssize_t steps, double *best,
    Workspace w) noexcept nogil
cdef void weigh(Py_ssize_t n, double *values, double temperature, double *out) noexcept nogil

@cython.locals(parameters="double *", masses="double *", found=double, w=Workspace)
cpdef tuple search(OrcaProblem problem, object log_masses, AdamRates adam, Py_ssize_t steps)
@cython.locals(row="double *")
cpdef object choose(object values, double temperature)
@cython.locals(widths="double *", masses="double *", scores="double *")
cpdef object cell_crps(object width, object mass, bint at_centre)
