"""Compiled kernels of a forecast's spread: how much wider outcomes lie than it says, from its ledger alone.

Let z be the normal score of an outcome, cut to the outer levels.  The sum over the outcomes of

    z^2 - E z^2  =  - integral of 2 s (1{z < s} - Phi(s)) ds

is linear in the ledger, the sums of 1{y < q_l} - l.  It is one number, so that few outcomes tell: a spread of two
thirds is clear after some twenty, while the squares of all levels together are mostly those of location.
"""

from __future__ import annotations

from orcast.constants import EVIDENCE_ODDS
from orcast.engine.kernels.records import LedgerRow
from orcast.jit import kernel, kernel_part
from orcast.jit.ieee import erf, exp, pi, real_power, sqrt

# The forecast's own spread counts as so many outcomes that are new.
PRIOR_OUTCOMES = 5.0
# What is believed of the ratio of the two spreads, and steps of Newton's method to it.
NARROWEST, WIDEST, STEPS = 0.4, 3.0, 9


@kernel
def spread_excess(ledger, levels, scores):
    """The sum of z^2 - E z^2, its variance an outcome, and how many outcomes chance would need for such blocks."""
    last = ledger.shape[1] - 1
    total, block, usual = 0.0, 0.0, 0.0
    square, mean, second, below = 0.0, 0.0, 0.0, 0.0
    for i in range(last):
        left, right = scores[max(i - 1, 0)], scores[min(i + 1, last - 1)]
        weight = scores[i] * (right - left)
        total -= weight * ledger[LedgerRow.SUMS, i]
        block += ledger[LedgerRow.BLOCK, i] * ledger[LedgerRow.BLOCK, i]
        usual += levels[i] * (1.0 - levels[i])
        # z^2 between the last level and this one, up to a constant
        mean += (levels[i] - below) * square
        second += (levels[i] - below) * square * square
        below = levels[i]
        square += weight
    mean += (1.0 - below) * square
    second += (1.0 - below) * square * square
    return total, second - mean * mean, (ledger[LedgerRow.SUMS, last] + block) / usual


@kernel
def spread_errors(ledger, levels, scores):
    """By how many standard errors outcomes lie wider than a forecast says."""
    total, variance, chance = spread_excess(ledger, levels, scores)
    return total / sqrt(max(variance * chance, 1e-300))


@kernel
def spread_with(excess, most):
    """The spread b with E min(b |z|, most)^2 = E min(|z|, most)^2 + excess, for a standard normal z."""
    b, wanted = 1.0, 0.0
    for step in range(STEPS):
        x = most / b
        within = erf(x / sqrt(2.0))
        inner = within - 2.0 * x * exp(-0.5 * x * x) / sqrt(2.0 * pi)
        value = b * b * inner + most * most * (1.0 - within)
        if step == 0:
            wanted = value + excess
        b = min(max(b + (wanted - value) / max(2.0 * b * inner, 0.1), NARROWEST), WIDEST)
    return b


@kernel_part
def stretch_of(ledger, levels, scores, count):
    """The spread of the outcomes over the forecast's, as far as evidence goes; `count` outcomes are in the ledger.

    With k outcomes for each that is new, the odds of any stretch are those of Schwarz's criterion,

        EVIDENCE_ODDS exp(t^2 / 2) / sqrt(1 + count / k),       t = spread in standard errors

    and the stretch is what shrunk squares ask for, to the power of its share.
    """
    if count <= 0.0:
        return 1.0
    total, variance, chance = spread_excess(ledger, levels, scores)
    overlap = max(chance / count, 1.0)
    square = total * total / (variance * count * overlap)
    odds = EVIDENCE_ODDS * exp(min(0.5 * square, 600.0)) / sqrt(1.0 + count / overlap)
    stretch = spread_with(total / (count + PRIOR_OUTCOMES * overlap), scores[scores.shape[0] - 1])
    return real_power(stretch, odds / (1.0 + odds))
