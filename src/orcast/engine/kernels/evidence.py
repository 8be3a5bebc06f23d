"""Compiled kernels of evidence: what was learnt counts as far as it is ahead by more than chance.

Let d_1, d_2, ... be what the forecast to be beaten lost more than what was learnt, in units of its usual loss.  With n
outcomes outstanding errors overlap, so that sums over blocks of n + 1 outcomes are what is independent.  The share of
what was learnt is that of odds

    ODDS exp(RATE t),       t = sum of d / sqrt(1 + sum of squares of block sums)

both sums discounted: t is the gain in standard errors, and near zero as long as there is little to go by.
"""

from __future__ import annotations

from orcast.constants import EVIDENCE_DISCOUNT, EVIDENCE_ODDS, EVIDENCE_RATE
from orcast.engine.kernels.records import Evidence
from orcast.jit import kernel, kernel_part
from orcast.jit.ieee import exp, sqrt


@kernel_part
def standard_errors(evidence):
    """The gain in standard errors."""
    block = evidence[Evidence.BLOCK]
    return evidence[Evidence.GAIN] / sqrt(1.0 + evidence[Evidence.SQUARE] + block * block)


@kernel
def share_of(evidence, hint, odds, tune):
    """The share of what was learnt; `hint` is evidence from elsewhere, in standard errors."""
    gain = tune[1] * (standard_errors(evidence) + hint)
    return odds / (odds + exp(min(max(-gain, -700.0), 700.0)))


@kernel
def add_evidence(evidence, gain, pending, tune):
    """One more difference of losses, with so many outcomes outstanding."""
    evidence[Evidence.GAIN] = tune[2] * evidence[Evidence.GAIN] + gain
    evidence[Evidence.SQUARE] *= tune[2]
    evidence[Evidence.BLOCK] += gain
    evidence[Evidence.COUNT] += 1.0
    if evidence[Evidence.COUNT] > pending:
        evidence[Evidence.SQUARE] += evidence[Evidence.BLOCK] * evidence[Evidence.BLOCK]
        evidence[Evidence.BLOCK] = 0.0
        evidence[Evidence.COUNT] = 0.0
