"""Compiled kernels of evidence: what was learnt counts as far as it is ahead by more than chance.

Let d_1, d_2, ... be what the forecast to be beaten lost more than what was learnt, in units of its usual loss.  With n
outcomes outstanding errors overlap, so that sums over blocks of n + 1 outcomes are what is independent.  The share of
what was learnt is that of odds

    odds exp(RATE t),       t = sum of d / sqrt(1 + sum of squares of block sums)

both sums discounted: t is the gain in standard errors, and near zero as long as there is little to go by.

A forecast that is miscalibrated beyond chance has a fault, whatever it costs.  Its ledger, the sum of its pinball
gradients, has about the square that the squares of block sums add up to if it is calibrated; so their ratio is about 1
then, and more if not.  Most of that square is location, so that a fault of an expert's spread would show late: it is a
part of the measure by itself (`kernels.spread`).
"""

from __future__ import annotations

import numpy as np

from orcast.constants import EVIDENCE_DISCOUNT, EVIDENCE_ODDS, EVIDENCE_RATE
from orcast.engine.kernels.quantile_trackers import pinball_gradient
from orcast.engine.kernels.records import Evidence, LedgerRow
from orcast.engine.kernels.spread import spread_errors
from orcast.jit import kernel, kernel_part
from orcast.jit.ieee import exp, sqrt

# Outcomes outstanding beyond these are those of batches, not of horizons that overlap.
OVERLAP = 8.0
# The part of the spread in an expert's miscalibration.
SPREAD_PART = 0.4
# The most that a ratio is: within a long block, chance may cancel to nothing.
MOST_BEYOND = 1e3
# The most that a fault counts, in standard errors.
MOST_FAULT = 3.0


@kernel_part
def standard_errors(evidence):
    """The gain in standard errors."""
    block = evidence[Evidence.BLOCK]
    return evidence[Evidence.GAIN] / sqrt(1.0 + evidence[Evidence.SQUARE] + block * block)


@kernel_part
def prior_odds(pending):
    """The odds of what was learnt before any evidence; less where errors overlap, which are one observation."""
    return EVIDENCE_ODDS / sqrt(1.0 + min(pending, OVERLAP))


@kernel
def share_of(evidence, hint, odds):
    """The share of what was learnt, given its odds before any evidence; `hint` is evidence from elsewhere."""
    gain = EVIDENCE_RATE * (standard_errors(evidence) + hint)
    return odds / (odds + exp(min(max(-gain, -700.0), 700.0)))


@kernel
def add_evidence(evidence, gain, pending):
    """One more difference of losses, with so many outcomes outstanding."""
    evidence[Evidence.GAIN] = EVIDENCE_DISCOUNT * evidence[Evidence.GAIN] + gain
    evidence[Evidence.SQUARE] *= EVIDENCE_DISCOUNT
    evidence[Evidence.BLOCK] += gain
    evidence[Evidence.COUNT] += 1.0
    if evidence[Evidence.COUNT] > pending:
        evidence[Evidence.SQUARE] += evidence[Evidence.BLOCK] * evidence[Evidence.BLOCK]
        evidence[Evidence.BLOCK] = 0.0
        evidence[Evidence.COUNT] = 0.0


@kernel
def beyond_chance(ledger):
    """How far a forecast's miscalibration is beyond what chance makes of it: about 1 if it is calibrated."""
    last = ledger.shape[1] - 1
    square = 0.0
    block = 0.0
    for i in range(last):
        square += ledger[LedgerRow.SUMS, i] * ledger[LedgerRow.SUMS, i]
        block += ledger[LedgerRow.BLOCK, i] * ledger[LedgerRow.BLOCK, i]
    return min(square / max(ledger[LedgerRow.SUMS, last] + block, 1e-300), MOST_BEYOND)


@kernel
def expert_beyond_chance(ledger, levels, scores):
    """The same of an expert: to a smaller part of its spread alone, for which it is stretched before all else."""
    errors = spread_errors(ledger, levels, scores)
    return (1.0 - SPREAD_PART) * beyond_chance(ledger) + SPREAD_PART * errors * errors


@kernel_part
def fault(ratio, least):
    """A ratio that is clearly beyond chance as evidence, in standard errors."""
    return min(max(ratio - least, 0.0), MOST_FAULT)


@kernel_part
def share_atom(quantiles, y, levels, gradient):
    """On an atom, the share of it below each of its levels, whose mean is zero if the forecast is calibrated."""
    size = levels.shape[0]
    first = 0
    while first < size and quantiles[first] < y:
        first += 1
    end = first
    while end < size and quantiles[end] == y:
        end += 1
    if end == first:
        return
    low = 0.5 * (levels[first - 1] + levels[first]) if first > 0 else 0.0
    high = 0.5 * (levels[end - 1] + levels[end]) if end < size else 1.0
    for i in range(first, end):
        gradient[i] = (levels[i] - low) / (high - low) - levels[i]


@kernel
def learn_ledger(ledger, quantiles, levels, pending, y):
    """Settle a forecast that was made with so many outcomes outstanding."""
    last = ledger.shape[1] - 1
    gradient = np.empty(last)
    pinball_gradient(quantiles, y, levels, gradient)
    share_atom(quantiles, y, levels, gradient)
    ledger[LedgerRow.SUMS, last] *= EVIDENCE_DISCOUNT * EVIDENCE_DISCOUNT
    ledger[LedgerRow.BLOCK, last] += 1.0
    over = ledger[LedgerRow.BLOCK, last] > pending
    for i in range(last):
        ledger[LedgerRow.SUMS, i] = EVIDENCE_DISCOUNT * ledger[LedgerRow.SUMS, i] + gradient[i]
        ledger[LedgerRow.BLOCK, i] += gradient[i]
        if over:
            ledger[LedgerRow.SUMS, last] += ledger[LedgerRow.BLOCK, i] * ledger[LedgerRow.BLOCK, i]
            ledger[LedgerRow.BLOCK, i] = 0.0
    if over:
        ledger[LedgerRow.BLOCK, last] = 0.0
