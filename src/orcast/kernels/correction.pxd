cimport cython
from libc.math cimport exp
from orcast.kernels.delays cimport delayed, horizon
from orcast.kernels.evidence cimport (
    OVERLAP,
    add_evidence,
    beyond_chance,
    expert_beyond_chance,
    fault,
    learn_ledger,
    prior_odds,
    share_of,
)
from orcast.kernels.level_offsets cimport learn_levels, rate_of, spread_of
from orcast.kernels.quantile_function cimport between, bound_high, bound_low, corrected, outer_slopes
from orcast.kernels.quantile_trackers cimport (
    PER_SCALE,
    QuantileTrackers,
    first_awake,
    offset_quantiles,
    pinball,
    quantile_trackers,
    say,
)
from orcast.kernels.quantile_trackers cimport gradients as pool_gradients
from orcast.kernels.quantile_trackers cimport learn as learn_offsets
from orcast.kernels.rows cimport Workspace, cut, mark, release, take
from orcast.kernels.spread cimport stretch_of
from orcast.kernels.state cimport POOL_EVIDENCE, POOL_EXCESS, Memory, Round, Rules, Statistics, evidence_at
from orcast.kernels.tracker cimport learn as teach_learners
from orcast.kernels.tracker cimport learners_say

cdef double INF, LOSS_DISCOUNT, WEIGHT_RATE, CAP, LEVEL_ODDS, LEVEL_SPARED, CLEAR_FAULT, CLEAR_POOL_FAULT
cdef double OWN_FAULT, NO_GAIN, START

cdef QuantileTrackers trackers_of(Rules rules, Memory memory) noexcept nogil
cdef double learner_odds(double pending) noexcept nogil
cdef double level_odds(double share, double pending) noexcept nogil
cdef double own_odds(Statistics *statistics, Py_ssize_t heard) noexcept nogil
cdef double hint_of(Rules rules, Memory memory, double *signal, Py_ssize_t heard, double pending) noexcept nogil
cdef void blend(
    Rules rules, double *loss, double odds, double young, Round round, Py_ssize_t heard, double *q, double slope_low,
    double slope_high, double *out
) noexcept nogil
cdef void cap(Rules rules, Statistics *statistics, double *q, double *out) noexcept nogil
cdef void stretched(
    Rules rules, Memory memory, double *signal, Py_ssize_t heard, double *q, double slope_low, double slope_high,
    double *out
) noexcept nogil
cdef void correct(
    Rules rules, Memory memory, Round round, double *signal, Py_ssize_t heard, double *out, Workspace w
) noexcept nogil
cdef void learn(
    Rules rules, Memory memory, Round round, double *signal, Py_ssize_t heard, double y, double clipped, double weight,
    double unit, Workspace w
) noexcept nogil
cdef void learn_level_offsets(
    Rules rules, Memory memory, Round round, double y, double clipped, double unit, Workspace w
) noexcept nogil
cdef void learn_weights(
    Rules rules, Memory memory, Round round, double *signal, Py_ssize_t heard, double clipped, double weight,
    double unit, double *q, double slope_low, double slope_high, Workspace w
) noexcept nogil
cdef double pool_part(
    Rules rules, Memory memory, Round round, double *signal, Py_ssize_t heard, double y, double *out, Workspace w
) noexcept nogil
