from libc.math cimport exp, fabs, log, log1p, sqrt
from orcast.kernels.delays cimport delay_odds, delay_weight, delayed, horizon
from orcast.kernels.finite_solver cimport sigmoid
from orcast.kernels.finite_state cimport FEATURES, FIRST_STAGE, HATS, LEARNERS, LOSSES, MOST_USED
from orcast.kernels.finite_state cimport BinaryFeatures, BinaryOdds, BinaryStatistics, FiniteRound, FiniteState
from orcast.kernels.numerics cimport real_power
from orcast.kernels.rows cimport Workspace, cut, int64_t, mark, numbers_of, release, take, whole_of

cdef double BINARY_LOSS_DISCOUNT, LOSS_DISCOUNT, MOST_EXPERT, MOST_FEATURE, MOST_PRIOR, FAST_STEP, SLOW_STEP, MEAN_STEP
cdef double EXPERT_ODDS, LEAST_CURVATURE
cdef Py_ssize_t EXPERT, AGREED, KNOT_COUNT
cdef double *KNOTS
cdef double *RATES
cdef double *DISCOUNT
cdef double *START
cdef int64_t *USED
cdef int64_t *USED_FEATURES
cdef int64_t *THETA_AT
cdef int64_t *SPREAD_AT

cdef double log_odds(double p, double most) noexcept nogil
cdef double log_loss(double z, double y) noexcept nogil
cdef void observe(BinaryStatistics *statistics, double x, FiniteRound round) noexcept nogil
cdef double learner_odds(
    FiniteState state, Py_ssize_t i, double offset, double pending, FiniteRound round
) noexcept nogil
cdef double committee(FiniteState state, double x, double pending, FiniteRound round) noexcept nogil
cdef void step(
    FiniteState state, Py_ssize_t i, FiniteRound round, double y, double weight, double *f, double *gain
) noexcept nogil
cdef void teach(FiniteState state, FiniteRound round, double pending, double y, Workspace w) noexcept nogil
cdef void learn_statistics(BinaryStatistics *statistics, FiniteRound round, double y, double weight) noexcept nogil
cpdef object start(FiniteState state)
