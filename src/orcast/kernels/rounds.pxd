cimport cython
from libc.math cimport exp, fabs, isnan, sqrt
from orcast.kernels.cells cimport build_cells, crps, cut_cells, expected_crps, locate, mean_of, rebin
from orcast.kernels.correction cimport correct as correct_errors, learn as learn_correction, pool_part
from orcast.kernels.counts cimport count
from orcast.kernels.delays cimport delay_odds, delay_weight, delayed
from orcast.kernels.equilibrium cimport crps_difference, payoff
from orcast.kernels.groups cimport correct as correct_groups, learn as learn_groups
from orcast.kernels.last_layer cimport play
from orcast.kernels.ledger cimport mean_size, settle, squared_norm, squared_payoff
from orcast.kernels.pit_members cimport mix_members, teach_members
from orcast.kernels.quantile_function cimport between
from orcast.kernels.reading cimport nearest_normal, read_quantiles, read_randomised
from orcast.kernels.rows cimport Workspace, copy, cut, int64_t, mark, numbers_of, readable_of, release, take, take_whole, workspace
from orcast.kernels.state cimport (
    CELL_ROWS, ROUND_LOG_SIZE, ExpertLoss, Info, Memory, Rival, Round, RoundLog, Rules, Statistics, as_log,
    expert_loss_at, rival_at
)

cdef double LOSS_DISCOUNT, WEIGHT_RATE, INF, NAN, BOUND_MASS, EVEN_SHARE, WINDOW, USUAL, LEAST, REACH_STEP, LEVEL_STEP
cdef double MOST_BEHIND, MOST_NOISE, MOST_SCORE
cdef Py_ssize_t NEIGHBOURS

cdef double usual_loss(Statistics *statistics) noexcept nogil
cdef double log_weight(double behind, double squares) noexcept nogil
cdef void smooth_over_levels(double *values, Py_ssize_t levels, double *out) noexcept nogil
cdef void sort(double *values, Py_ssize_t size) noexcept nogil
cdef void pool_experts(
    Memory memory, double *experts, Py_ssize_t number, Py_ssize_t levels, double *out, Workspace w
) noexcept nogil
cdef void miss_experts(Rules rules, Round round) noexcept nogil
cdef void set_window(Rules rules, double *q, double *shifted, Statistics *statistics, Info *info) noexcept nogil
cdef Py_ssize_t even_cells(double low, double high, Py_ssize_t n, Round round) noexcept nogil
cdef Py_ssize_t cells_around(
    Rules rules, double *q, double usual, Info *info, double *left, double *right, double *mass, int64_t *slots, Workspace w
) noexcept nogil
cdef Py_ssize_t cut_at_jumps(Rules rules, Py_ssize_t n, Round round) noexcept nogil
cdef void put_on_cells(
    Rules rules, double *q, double usual, Py_ssize_t n, Round round, double *out, Workspace w
) noexcept nogil
cdef void correct_expert(
    Rules rules, Memory memory, double *experts, Py_ssize_t number, double *signal, Py_ssize_t heard, double usual,
    Round round, double *out, Workspace w
) noexcept nogil
cdef Py_ssize_t expert_cells(
    Rules rules, Memory memory, double *experts, Py_ssize_t number, double *signal, Py_ssize_t heard, Round round,
    Workspace w
) noexcept nogil
cdef Py_ssize_t bare_cells(Rules rules, Round round) noexcept nogil
@cython.locals(n=Py_ssize_t)
cdef void open_round(
    Rules rules, Memory memory, double *experts, Py_ssize_t number, double *signal, Py_ssize_t heard, double pending,
    Round round, double *mix, Workspace w
) noexcept nogil
cdef void place_rivals(Rules rules, Memory memory, Py_ssize_t n, Round round, Workspace w) noexcept nogil
@cython.locals(n=Py_ssize_t, total=Py_ssize_t)
cdef void recell(Rules rules, Memory memory, Round round, double *mix, Workspace w) noexcept nogil
@cython.locals(n=Py_ssize_t)
cdef void play_evenly(Rules rules, Memory memory, double *mix, double reserved, Round round, Workspace w) noexcept nogil
cdef void take_witnesses(Rules rules, Workspace w) noexcept nogil
cdef void predict_round(
    Rules rules, Memory memory, double *experts, Py_ssize_t number, double *signal, Py_ssize_t heard, double pending,
    double reserved, Round round, Workspace w
) noexcept nogil
cdef void settle_round(
    Rules rules, Memory memory, Round round, double reserved, double y, double *at, Workspace w
) noexcept nogil
cdef void learn_level(Statistics *statistics, double y, double rounds) noexcept nogil
cdef double learn_loss(Rules rules, Statistics *statistics, Round round, double loss, double clipped) noexcept nogil
cdef double pinball(double quantile, double level, double y) noexcept nogil
cdef void learn_weights(Rules rules, Memory memory, Round round, double clipped, double weight, double unit) noexcept nogil
@cython.locals(n=Py_ssize_t)
cdef void learn_rivals(Rules rules, Memory memory, Round round, Py_ssize_t k, double loss, double clipped) noexcept nogil
cdef double median_of(Py_ssize_t n, Round round) noexcept nogil
@cython.locals(n=Py_ssize_t)
cdef void learn(
    Rules rules, Memory memory, Round round, double *signal, Py_ssize_t heard, double y, Workspace w
) noexcept nogil
cdef void update_round(
    Rules rules, Memory memory, Round round, double *signal, Py_ssize_t heard, double reserved, double y, double *at,
    Workspace w
) noexcept nogil
@cython.locals(n=Py_ssize_t, low=bint, high=bint)
cdef void log_round(
    Rules rules, Round round, double *levels, Py_ssize_t width, double *row, double *log_row, Workspace w
) noexcept nogil
cdef double miscalibration(Rules rules, Memory memory) noexcept nogil
cdef void forget_unit(Memory memory, Round round) noexcept nogil

cpdef Round predict(
    Rules rules, Memory memory, object experts, bint own, object signal, double pending, double reserved, object context,
    double coin
)
cpdef Round prepare(
    Rules rules, Memory memory, object experts, bint own, object signal, double pending, object context, object mix
)
cpdef object replace_cells(Rules rules, Memory memory, Round round, object mix)
cpdef object finish(
    Rules rules, Memory memory, object mix, double reserved, bint thorough, Round round, object witness
)
cpdef object update(Rules rules, Memory memory, Round round, object signal, double reserved, double y, object at)
cpdef object learn_only(Rules rules, Memory memory, Round round, double y)
cpdef double pool_gradients(Rules rules, Memory memory, Round round, object signal, double y, object out) except? -1.0
cpdef object pooled_quantiles(Rules rules, Memory memory, object experts)
cpdef object payoffs(Rules rules, Round round, object places, object witnesses)
cpdef Py_ssize_t cell_of(Round round, double y) except -1
cpdef object run(
    Rules rules, Memory memory, object experts, object contexts, object outcomes, object coins, object levels,
    object quantiles, object round_log
)
