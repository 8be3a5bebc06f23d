"""Weights for delayed outcomes: with n outcomes outstanding, all that was learnt is older by n rounds."""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

from orcast.constants import DELAY_ODDS

if not cython.compiled:
    from orcast.kernels.numerics import real_power
    from orcast.kernels.pure import sqrt

# With this many outcomes outstanding, the last outcomes are stale.
STALE = 16.0


def horizon(pending):
    """Index of the group of losses of a round; a learner may do well on fresh outcomes and badly on stale ones."""
    if pending < 1.0:
        return 0
    return 1 if pending < STALE else 2


def delay_odds(pending):
    """Prior odds of the learners against the expert."""
    return real_power(1.0 + pending, -DELAY_ODDS)


def delay_weight(pending):
    """Weight of an observation; errors of one batch are seldom independent."""
    return 1.0 / sqrt(1.0 + pending)


def delayed(discount, weight):
    """Discount of a sum to which an observation of this weight is added."""
    return 1.0 - (1.0 - discount) * weight
