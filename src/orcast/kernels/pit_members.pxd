cimport cython
from libc.math cimport exp, sin, sqrt
from orcast.kernels.cells cimport crps, place
from orcast.kernels.delays cimport delayed, horizon
from orcast.kernels.evidence cimport add_evidence, prior_odds, share_of
from orcast.kernels.rows cimport Workspace, cut, mark, release, take
from orcast.kernels.state cimport BASIS, Memory, Round, Rules, evidence_at

cdef double LOSS_DISCOUNT, MAX_TILT, WEIGHT_RATE, PI, PRIOR_SHARE

cdef double cosine_mean(Py_ssize_t j, double below, double above) noexcept nogil
cdef void basis_of(Rules rules, Py_ssize_t n, double regular, double *prior, double *out) noexcept nogil
cdef void mix_members(
    Rules rules, Memory memory, Py_ssize_t n, Round round, double *mix, Workspace w
) noexcept nogil
@cython.locals(n=Py_ssize_t)
cdef void teach_members(
    Rules rules, Memory memory, Round round, Py_ssize_t k, double y, double clipped, double weight, double unit,
    Workspace w
) noexcept nogil
