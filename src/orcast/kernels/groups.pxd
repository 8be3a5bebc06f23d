from libc.math cimport exp, fabs, sqrt
from orcast.kernels.delays cimport delayed
from orcast.kernels.quantile_function cimport corrected, normal_score, outer_slopes
from orcast.kernels.quantile_trackers cimport pinball
from orcast.kernels.rows cimport Workspace, mark, release, take
from orcast.kernels.state cimport GroupStatistics, Memory, Round, Rules, group_statistics_at

cdef double LOSS_DISCOUNT, WEIGHT_RATE, START, RATE, MOST_SCORE, LEAST_SPREAD, MOST_SPREAD

cdef (double, double) wanted_correction(Rules rules, GroupStatistics *by_group, double *context) noexcept nogil
cdef void correct(Rules rules, Memory memory, Round round, double odds, double *out, Workspace w) noexcept nogil
cdef void learn(
    Rules rules, Memory memory, Round round, double y, double clipped, double weight, double unit, Workspace w
) noexcept nogil
