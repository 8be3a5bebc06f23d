cimport cython
from libc.math cimport fabs, isnan, sqrt
from orcast.committee.group cimport Group, predict_experts, update_experts
from orcast.committee.state cimport Plan
from orcast.kernels.cells cimport build_cells, crps, cut_cells, expected_crps, locate, mean_of, rebin
from orcast.kernels.equilibrium cimport crps_difference, payoff
from orcast.kernels.groups cimport correct_groups, learn_groups
from orcast.kernels.last_layer cimport run_rounds
from orcast.kernels.ledger cimport miscalibration, settle, squared_payoff
from orcast.kernels.reading cimport count, nearest_normal, read_forecast, write_pits
from orcast.kernels.rows cimport Row, Workspace, copy, cut, mark, numbers_of, readable_of, release, take, workspace
from orcast.kernels.state cimport (
    CELL_ROWS, ROUND_LOG_SIZE, Info, Memory, Round, Rules, Statistics, as_log, cell_count, rival_at
)

cdef double LOSS_DISCOUNT, MISSES_KEPT, INF, NAN, OWN_ROWS, BOUND_MASS, EVEN_SHARE, WINDOW, USUAL, LEAST, REACH_STEP
cdef double LEVEL_STEP

cdef double usual_loss(Statistics *) noexcept nogil
cdef void mean_expert(Row, Py_ssize_t, Py_ssize_t, Row) noexcept nogil
cdef void miss_experts(Rules, Round) noexcept nogil
cdef void set_window(Rules, Row, Row, Statistics *, Info *) noexcept nogil
cdef Py_ssize_t even_cells(double, double, Py_ssize_t, Round) noexcept nogil
cdef Py_ssize_t cells_around(Rules, Row, double, Info *, Row, Row, Row, Workspace) noexcept nogil
cdef Py_ssize_t cut_at_jumps(Rules, Py_ssize_t, Round) noexcept nogil
cdef void put_on_cells(Rules, Row, double, Py_ssize_t, Round, Row, Workspace) noexcept nogil
cdef void keep_experts(Rules, Row, Py_ssize_t, Round) noexcept nogil
cdef Py_ssize_t expert_cells(Rules, Memory, Row, Py_ssize_t, Row, Round, Workspace) noexcept nogil
cdef Py_ssize_t bare_cells(Rules, Round) noexcept nogil
cdef void open_round(Rules, Memory, Row, Py_ssize_t, Row, double, Round, Row, Workspace) noexcept nogil
cdef void place_rivals(Rules, Memory, Py_ssize_t, Round, Workspace) noexcept nogil
cdef void recell(Rules, Memory, Round, Row, Workspace) noexcept nogil
cdef void run_evenly(Rules, Memory, Row, double, Round, Workspace) noexcept nogil
cdef void predict_round(Rules, Memory, Row, Py_ssize_t, Row, double, double, Round, Workspace) noexcept nogil
cdef void settle_round(Rules, Memory, Round, double, double, Workspace) noexcept nogil
cdef void learn_level(Statistics *, double, double) noexcept nogil
cdef void learn_loss(Rules, Statistics *, Round, double, double) noexcept nogil
cdef void learn_rivals(Rules, Memory, Round, Py_ssize_t, double, double) noexcept nogil
cdef double median_of(Py_ssize_t, Round) noexcept nogil
cdef void count_misses(Rules, Memory, Round, double) noexcept nogil
cdef void learn(Rules, Memory, Round, double, Workspace) noexcept nogil
cdef void update_round(Rules, Memory, Round, double, double, Workspace) noexcept nogil
cdef void log_round(Rules, Round, Row, Py_ssize_t, Row, Row, Workspace) noexcept nogil

@cython.locals(prepares=bint)
cpdef Round predict(Rules, Memory, object, object, bint, double, double, object, double, object)
cpdef object update(Rules, Memory, Round, double, double)
cpdef object learn_only(Rules, Memory, Round, double)
cpdef object payoffs(Rules, Round, object)
cpdef Py_ssize_t cell_of(Round, double) except -1
@cython.locals(learns=bint)
cpdef object run(Rules, Memory, Plan, Group, double, object, object, object, object, object, object, object, object)
