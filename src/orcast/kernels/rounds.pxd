cimport cython
from libc.math cimport fabs, isnan, sqrt
from orcast.committee.group cimport Group, predict_experts, update_experts
from orcast.committee.state cimport Plan
from orcast.kernels.cells cimport build_cells, crps, cut_cells, expected_crps, locate, mean_of, rebin
from orcast.kernels.equilibrium cimport crps_difference, payoff
from orcast.kernels.groups cimport correct_groups, learn_groups
from orcast.kernels.judging cimport put_witnesses
from orcast.kernels.last_layer cimport run_rounds
from orcast.kernels.ledger cimport mean_size, settle, squared_norm, squared_payoff
from orcast.kernels.reading cimport count, nearest_normal, read_quantiles, read_randomised
from orcast.kernels.rows cimport (
    Row, WholeRow, Workspace, copy, cut, mark, numbers_of, readable_of, release, take, take_whole, workspace
)
from orcast.kernels.state cimport (
    CELL_ROWS, ROUND_LOG_SIZE, Info, Memory, Round, Rules, Statistics, as_log, cell_count, rival_at
)

cdef double LOSS_DISCOUNT, MISSES_KEPT, INF, NAN, BOUND_MASS, EVEN_SHARE, WINDOW, USUAL, LEAST, REACH_STEP, LEVEL_STEP

cdef double usual_loss(Statistics *statistics) noexcept nogil
cdef void mean_expert(Row experts, Py_ssize_t number, Py_ssize_t levels, Row out) noexcept nogil
cdef void miss_experts(Rules rules, Round round) noexcept nogil
cdef void set_window(Rules rules, Row q, Row shifted, Statistics *statistics, Info *info) noexcept nogil
cdef Py_ssize_t even_cells(double low, double high, Py_ssize_t n, Round round) noexcept nogil
cdef Py_ssize_t cells_around(
    Rules rules, Row q, double usual, Info *info, Row left, Row right, Row mass, WholeRow slots, Workspace w
) noexcept nogil
cdef Py_ssize_t cut_at_jumps(Rules rules, Py_ssize_t n, Round round) noexcept nogil
cdef void put_on_cells(Rules rules, Row q, double usual, Py_ssize_t n, Round round, Row out, Workspace w) noexcept nogil
cdef void keep_experts(Rules rules, Row experts, Py_ssize_t number, Round round) noexcept nogil
cdef Py_ssize_t expert_cells(
    Rules rules, Memory memory, Row experts, Py_ssize_t number, Row prior, Round round, Workspace w
) noexcept nogil
cdef Py_ssize_t bare_cells(Rules rules, Round round) noexcept nogil
cdef void open_round(
    Rules rules, Memory memory, Row experts, Py_ssize_t number, Row prior, double pending, Round round, Row mix,
    Workspace w
) noexcept nogil
cdef void place_rivals(Rules rules, Memory memory, Py_ssize_t n, Round round, Workspace w) noexcept nogil
cdef void recell(Rules rules, Memory memory, Round round, Row mix, Workspace w) noexcept nogil
cdef void run_evenly(Rules rules, Memory memory, Row mix, double reserved, Round round, Workspace w) noexcept nogil
cdef void take_witnesses(Rules rules, Workspace w) noexcept nogil
cdef void predict_round(
    Rules rules, Memory memory, Row experts, Py_ssize_t number, Row prior, double pending, double reserved, Round round,
    Workspace w
) noexcept nogil
cdef void settle_round(
    Rules rules, Memory memory, Round round, double reserved, double y, Row at, Workspace w
) noexcept nogil
cdef void learn_level(Statistics *statistics, double y, double rounds) noexcept nogil
cdef void learn_loss(Rules rules, Statistics *statistics, Round round, double loss, double clipped) noexcept nogil
cdef void learn_rivals(
    Rules rules, Memory memory, Round round, Py_ssize_t k, double loss, double clipped
) noexcept nogil
cdef double median_of(Py_ssize_t n, Round round) noexcept nogil
cdef void count_misses(Rules rules, Memory memory, Round round, double y) noexcept nogil
cdef void learn(Rules rules, Memory memory, Round round, double y, Workspace w) noexcept nogil
cdef void update_round(
    Rules rules, Memory memory, Round round, double reserved, double y, Row at, Workspace w
) noexcept nogil
@cython.locals(low=bint, high=bint)
cdef void log_round(
    Rules rules, Round round, Row levels, Py_ssize_t width, Row row, Row log_row, Workspace w
) noexcept nogil
cdef double miscalibration(Rules rules, Memory memory) noexcept nogil
cdef void forget_unit(Memory memory, Round round) noexcept nogil

cpdef Round predict(
    Rules rules, Memory memory, object experts, object prior, bint own, double pending, double reserved, object context,
    double draw
)
cpdef Round prepare(
    Rules rules, Memory memory, object experts, object prior, bint own, double pending, object context, object mix
)
cpdef object replace_cells(Rules rules, Memory memory, Round round, object mix)
cpdef object finish(Rules rules, Memory memory, object mix, double reserved, bint thorough, Round round, object witness)
cpdef object update(Rules rules, Memory memory, Round round, double reserved, double y, object at)
cpdef object learn_only(Rules rules, Memory memory, Round round, double y)
cpdef object payoffs(Rules rules, Round round, object places, object witnesses)
cpdef Py_ssize_t cell_of(Round round, double y) except -1
@cython.locals(learns=bint)
cpdef object run(
    Rules rules, Memory memory, Plan plan, Group group, double number, object experts, object contexts, object outcomes,
    object draws, object levels, object quantiles, object round_log
)
