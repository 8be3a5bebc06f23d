"""Compiled kernels of how late outcomes count: with n outcomes outstanding, what was learnt is older by n rounds."""

from __future__ import annotations

from orcast.constants import DELAY_ODDS
from orcast.jit import kernel_part
from orcast.jit.ieee import real_power, sqrt

# With fewer outcomes outstanding than this, there are fresh ones to learn from.
STALE = 16.0


@kernel_part
def horizon(pending):
    """Which account of losses a round belongs to: what helps while outcomes are fresh may harm once they are stale."""
    if pending < 1.0:
        return 0
    return 1 if pending < STALE else 2


@kernel_part
def delay_odds(pending):
    """Prior odds of what was learnt against the expert."""
    return real_power(1.0 + pending, -DELAY_ODDS)


@kernel_part
def delay_weight(pending):
    """How much an observation counts: errors of one batch are seldom independent."""
    return 1.0 / sqrt(1.0 + pending)


@kernel_part
def delayed(discount, weight):
    """What is kept of a discounted sum when an observation of this weight is added."""
    return 1.0 - (1.0 - discount) * weight
