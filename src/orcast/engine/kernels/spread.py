"""Compiled kernels of a forecast's spread: how much wider outcomes lie than it says, from its ledger alone.

Let z be the normal score of an outcome, cut to the outer levels.  The sum over the outcomes of

    z^2 - E z^2  =  - integral of 2 s (1{z < s} - Phi(s)) ds

is linear in the ledger, the sums of 1{y < q_l} - l.  It is one number, so that few outcomes tell: a spread of two
thirds is clear after some twenty, while the squares of all levels together are mostly those of location.
"""

from __future__ import annotations

from orcast.constants import EVIDENCE_ODDS
from orcast.engine.kernels.records import LedgerRow, PoolSpread
from orcast.jit import kernel, kernel_part
from orcast.jit.ieee import erf, exp, pi, sqrt

# The forecast's own spread counts as so many outcomes that are new.
PRIOR_OUTCOMES = 3.0
# The most standard errors.
MOST_ERRORS = 30.0
# So many streams of a pool that agree are counted beside its own.
NO_VARIANCE = 4.0
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


@kernel_part
def in_errors(total, variance, chance):
    """A sum in standard errors; within a long block, chance may cancel to nothing."""
    return min(max(total / sqrt(max(variance * chance, 1e-300)), -MOST_ERRORS), MOST_ERRORS)


@kernel
def spread_errors(ledger, levels, scores):
    """By how many standard errors outcomes lie wider than a forecast says."""
    total, variance, chance = spread_excess(ledger, levels, scores)
    return in_errors(total, variance, chance)


@kernel
def spread_with(excess, most):
    """The spread b with E min(b |z|, most)^2 = E min(|z|, most)^2 + excess, for a standard normal z."""
    if excess == 0.0:
        return 1.0
    b, wanted = 1.0, 0.0
    for step in range(STEPS):
        x = most / b
        within = erf(x / sqrt(2.0))
        inner = within - 2.0 * x * exp(-0.5 * x * x) / sqrt(2.0 * pi)
        value = b * b * inner + most * most * (1.0 - within)
        if step == 0:
            wanted = value + excess
        last = b
        b = min(max(b + (wanted - value) / max(2.0 * b * inner, 0.1), NARROWEST), WIDEST)
        if abs(b - last) < 1e-12:
            break
    return b


@kernel_part
def odds_of_spread(square, outcomes):
    """Odds of any other spread than the forecast's, by Schwarz's criterion: `square` of its standard errors."""
    return EVIDENCE_ODDS * exp(min(0.5 * square, 600.0)) / sqrt(1.0 + outcomes)


@kernel_part
def stretch_of(ledger, levels, scores, count, usual):
    """The spread of the outcomes over the forecast's, as far as evidence goes; `count` outcomes are in the ledger.

    `usual` is what an outcome exceeds z^2 by elsewhere, 0 if nothing is known of that.  The own mean counts as far as
    it is clear, and is shrunk, k outcomes being as good as one that is new:

        usual + share (total - usual count) / (count + PRIOR_OUTCOMES k)
    """
    most = scores[scores.shape[0] - 1]
    stretch = spread_with(usual, most)
    if count <= 0.0:
        return stretch
    total, variance, chance = spread_excess(ledger, levels, scores)
    overlap = max(chance / count, 1.0)
    own = total - usual * count
    square = stretch * stretch
    odds = odds_of_spread(own * own / (square * square * variance * count * overlap), count / overlap)
    own *= odds / ((1.0 + odds) * (count + PRIOR_OUTCOMES * overlap))
    return spread_with(usual + own, most)


@kernel_part
def usual_excess(spreads):
    """What an outcome of a pool's streams exceeds z^2 by, as far as evidence goes; a PoolSpread each, added up.

    Standard errors t of streams that say the same do not differ, those of independent ones have a variance of 1.  So
    the mean of n streams is as sure as

        V = max(1 - variance of t, 0) + variance of t / n

    of one.  Few streams do not tell their variance: NO_VARIANCE more with none are counted.
    """
    streams, outcomes = spreads[PoolSpread.STREAMS], spreads[PoolSpread.OUTCOMES]
    if streams <= 0.0 or outcomes <= 0.0:
        return 0.0
    errors = spreads[PoolSpread.ERRORS] / streams
    apart = max(spreads[PoolSpread.SQUARES] - errors * spreads[PoolSpread.ERRORS], 0.0) / (streams - 1.0 + NO_VARIANCE)
    unsure = max(1.0 - apart, 0.0) + apart / streams
    overlap = max(spreads[PoolSpread.CHANCE] / outcomes, 1.0)
    odds = odds_of_spread(errors * errors / unsure, outcomes / (streams * overlap * unsure))
    return odds / (1.0 + odds) * spreads[PoolSpread.EXCESS] / (outcomes + PRIOR_OUTCOMES * overlap * unsure * streams)


@kernel_part
def add_spread(spreads, ledger, levels, scores, count, sign):
    """Put a stream's spread among those of its pool, or take it away."""
    if count <= 0.0:
        return
    total, variance, chance = spread_excess(ledger, levels, scores)
    spreads[PoolSpread.STREAMS] += sign
    spreads[PoolSpread.OUTCOMES] += sign * count
    spreads[PoolSpread.CHANCE] += sign * chance
    spreads[PoolSpread.EXCESS] += sign * total
    errors = in_errors(total, variance, chance)
    spreads[PoolSpread.ERRORS] += sign * errors
    spreads[PoolSpread.SQUARES] += sign * errors * errors
