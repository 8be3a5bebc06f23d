cimport cython
from libc.math cimport exp, fabs, log, sqrt
from orcast.kernels.delays cimport delayed
from orcast.kernels.quantile_function cimport normal_score, outcome_score, quantile_at
from orcast.kernels.rows cimport Workspace, cut, mark, release, take
from orcast.kernels.seasons cimport add_surprise, find_seasons, season_ago
from orcast.kernels.state cimport (
    LEARNER_SIZE,
    LOCATION_FEATURES,
    LONGEST_SEASON,
    SPREAD_FEATURES,
    LearnerRecord,
    Memory,
    Round,
    Rules,
    Statistics,
    TrackerRecord,
    learner_record_at,
    spread_at,
)

cdef double INF, DISCOUNT, LOCATION_START, LOCATION_CAP, SPREAD_CAP, FAST_DISCOUNT, SCORE_SIZE_DISCOUNT, MEAN_ABS
cdef double BOLD, CAREFUL, EARLY, FARTHEST_KEPT, FAR, YOUNG
cdef Py_ssize_t SEARCH, SEASON_AT, SPREAD_AT

cdef void least_squares(
    double *theta, double *P, Py_ssize_t width, double *x, Py_ssize_t count, double error, double weight, double cap,
    double *gain
) noexcept nogil
cdef double feature_of(
    double value, double size, Rules rules, double *q, double slope_low, double slope_high
) noexcept nogil
cdef void location_features(
    Rules rules, Memory memory, double *q, double slope_low, double slope_high, double pending, Round round
) noexcept nogil
cdef void spread_features(
    Statistics *statistics, TrackerRecord *record, LearnerRecord *own, double slow, double fast
) noexcept nogil
cdef double distance_of(TrackerRecord *record) noexcept nogil
cdef double trust(Rules rules, Round round, Py_ssize_t c, Py_ssize_t i) noexcept nogil
@cython.locals(count=Py_ssize_t)
cdef Py_ssize_t learner_features(Rules rules, Round round, Py_ssize_t c, double *out) noexcept nogil
cdef double uncertainty(Rules rules, Memory memory, double *features, Py_ssize_t count, Py_ssize_t c) noexcept nogil
cdef void learner_says(Rules rules, Memory memory, Round round, Py_ssize_t c, double *features) noexcept nogil
cdef void learners_say(
    Rules rules, Memory memory, double *q, double slope_low, double slope_high, double pending, Round round, Workspace w
) noexcept nogil
cdef void learn(
    Rules rules, Memory memory, Round round, double *q, double slope_low, double slope_high, double y, double clipped,
    double weight, double unit, Workspace w
) noexcept nogil
@cython.locals(seen=Py_ssize_t, changed=Py_ssize_t)
cdef void learn_seasons(Memory memory, double surprise) noexcept nogil
cpdef void skip_steps(Memory memory, Py_ssize_t count) noexcept nogil
cdef void forget(double *theta, double *P, Py_ssize_t i) noexcept nogil
cdef void rescale(Memory memory, double square, double most, double weight) noexcept nogil
@cython.locals(first=bint)
cdef void learn_features(Statistics *statistics, TrackerRecord *record, double y) noexcept nogil
