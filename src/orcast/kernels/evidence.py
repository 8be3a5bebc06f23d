"""Evidence for a correction, as the weight that it gets against the forecast without it.

Let d_1, d_2, ... be the loss of the forecast minus that of the correction, in units of the forecast's usual loss. With
n outcomes outstanding errors overlap, so that only sums over blocks of n + 1 outcomes are independent. The weight of
the correction is that of odds

    odds exp(RATE t),       t = sum of d / sqrt(1 + sum of squares of block sums)

with both sums discounted: t is the gain in standard errors, and near zero while there are few outcomes.

The ledger of a forecast is the sum of its pinball gradients. If the forecast is calibrated, the square of the ledger
has about the size of the sum of the squared block sums: their ratio is a test statistic that is about 1 under
calibration. Most of that square is location, so that an error of the spread would be detected late: it enters with a
term of its own (`orcast.kernels.spread`).
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

from orcast.constants import EVIDENCE_DISCOUNT, EVIDENCE_ODDS, EVIDENCE_RATE

if not cython.compiled:
    from orcast.kernels.pure import exp, sqrt
    from orcast.kernels.quantile_trackers import pinball_gradient
    from orcast.kernels.rows import mark, numbers_of, readable_of, release, take, workspace
    from orcast.kernels.spread import spread_errors

# More outstanding outcomes than this come from batches, not from overlapping horizons.
OVERLAP = 8.0
# Weight of the spread in the miscalibration of an expert.
SPREAD_PART = 0.4
# Largest ratio: within a long block the noise may cancel.
MOST_BEYOND = 1e3
# Largest evidence from miscalibration, in standard errors.
MOST_FAULT = 3.0


def standard_errors(evidence):
    """Gain in standard errors."""
    block = evidence.block
    return evidence.gain / sqrt(1.0 + evidence.square + block * block)


def prior_odds(pending):
    """Odds of a correction before any evidence; smaller where errors overlap, which are one observation."""
    return EVIDENCE_ODDS / sqrt(1.0 + min(pending, OVERLAP))


def share_of(evidence, hint, odds):
    """Weight of a correction, given its prior odds; `hint` is evidence from other sources."""
    gain = EVIDENCE_RATE * (standard_errors(evidence) + hint)
    return odds / (odds + exp(min(max(-gain, -700.0), 700.0)))


def add_evidence(evidence, gain, pending):
    """Add a difference of losses, with `pending` outcomes outstanding."""
    evidence.gain = EVIDENCE_DISCOUNT * evidence.gain + gain
    evidence.square *= EVIDENCE_DISCOUNT
    evidence.block += gain
    evidence.count += 1.0
    if evidence.count > pending:
        evidence.square += evidence.block * evidence.block
        evidence.block = 0.0
        evidence.count = 0.0


def beyond_chance(ledger, n):
    """Test statistic for the miscalibration of a forecast; about 1 if it is calibrated."""
    square = 0.0
    block = 0.0
    for i in range(n):
        square += ledger[i] * ledger[i]
        block += ledger[n + 1 + i] * ledger[n + 1 + i]
    return min(square / max(ledger[n] + block, 1e-300), MOST_BEYOND)


def expert_beyond_chance(ledger, n, levels, scores):
    """Test statistic for the miscalibration of an expert, with a term for its spread alone."""
    errors = spread_errors(ledger, n, levels, scores)
    return (1.0 - SPREAD_PART) * beyond_chance(ledger, n) + SPREAD_PART * errors * errors


def fault(ratio, least):
    """Evidence from a test statistic, in standard errors; zero below `least`."""
    return min(max(ratio - least, 0.0), MOST_FAULT)


def share_atom(quantiles, n, y, levels, gradient):
    """On an atom, set the gradient at each of its levels to the part of the atom below; its mean is 0 if calibrated."""
    first = 0
    while first < n and quantiles[first] < y:
        first += 1
    end = first
    while end < n and quantiles[end] == y:
        end += 1
    if end == first:
        return
    low = 0.5 * (levels[first - 1] + levels[first]) if first > 0 else 0.0
    high = 0.5 * (levels[end - 1] + levels[end]) if end < n else 1.0
    for i in range(first, end):
        gradient[i] = (levels[i] - low) / (high - low) - levels[i]


def learn_ledger(ledger, n, quantiles, levels, pending, y, w):
    """Add the outcome of a forecast that was made with `pending` outcomes outstanding."""
    used = mark(w)
    gradient = take(w, n)
    pinball_gradient(quantiles, n, y, levels, gradient)
    share_atom(quantiles, n, y, levels, gradient)
    ledger[n] *= EVIDENCE_DISCOUNT * EVIDENCE_DISCOUNT
    ledger[2 * n + 1] += 1.0
    over = ledger[2 * n + 1] > pending
    for i in range(n):
        ledger[i] = EVIDENCE_DISCOUNT * ledger[i] + gradient[i]
        ledger[n + 1 + i] += gradient[i]
        if over:
            ledger[n] += ledger[n + 1 + i] * ledger[n + 1 + i]
            ledger[n + 1 + i] = 0.0
    if over:
        ledger[2 * n + 1] = 0.0
    release(w, used)


# --- entries for Python; arrays are 1-d, a ledger has 2 (n + 1) numbers


def beyond_chance_arrays(ledger):
    """Result of `beyond_chance` for an array."""
    return beyond_chance(numbers_of(ledger), len(ledger) // 2 - 1)


def expert_beyond_chance_arrays(ledger, levels, scores):
    """Result of `expert_beyond_chance` for arrays."""
    return expert_beyond_chance(numbers_of(ledger), len(levels), readable_of(levels), readable_of(scores))


def learn_ledger_arrays(ledger, quantiles, levels, pending: float, y: float):
    """Run `learn_ledger` on arrays."""
    learn_ledger(numbers_of(ledger), len(levels), numbers_of(quantiles), readable_of(levels), pending, y, workspace())
