"""Quantile trackers: offsets from the expert's quantiles, one for each level.

Each tracker takes gradient steps on the pinball loss and shrinks its offsets at a small rate,

    theta_l  <-  (1 - leak) theta_l - step u g_l,      g_l = 1{y < q_l + theta_l} - l

with the expert's usual loss as the unit u (quantile tracking, Angelopoulos et al. 2023; at many levels at once, Ding,
Gibbs and Tibshirani 2025). With two changes: with late outcomes the gradient is taken at the current offsets, not at
those of the forecast, so that an error is not corrected twice. And in a pool a share of each step is the mean gradient
of all its streams since the last outcome of this one. Trackers with such a share are off without a pool: they are not
updated and have no weight.
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

from orcast.constants import LOSS_DISCOUNT

if not cython.compiled:
    from orcast.kernels.rows import copy, cut, mark, release, take
    from orcast.kernels.state import POOL_COUNT, POOL_SUMS

# Steps are in units of this many usual losses; offsets are at most FARTHEST of them.
UNIT = 3.0
FARTHEST = 50.0
# Expected CRPS of a normal in units of its standard deviation.
PER_SCALE = 0.5641895835477563


def offset_quantiles(q, n, offsets, scale, low, high, out):
    """Quantiles of the expert plus offsets (times a scale), sorted and within the bounds."""
    for i in range(n):
        value = min(max(q[i] + scale * offsets[i], low), high)
        j = i
        while j > 0 and out[j - 1] > value:
            out[j] = out[j - 1]
            j -= 1
        out[j] = value


def pinball_gradient(quantiles, n, y, levels, out):
    """1{y < q} - level at each level; zero at a tie, where any subgradient is valid."""
    for i in range(n):
        if y < quantiles[i]:
            out[i] = 1.0 - levels[i]
        elif y > quantiles[i]:
            out[i] = -levels[i]
        else:
            out[i] = 0.0


def offset_gradient(q, n, offsets, scale, low, high, y, levels, out, w):
    """Gradient at quantiles plus offsets before they are sorted.

    So each offset gets the gradient of its own level: by position among the sorted quantiles, an offset far from the
    others would be pushed further away.
    """
    used = mark(w)
    quantiles = take(w, n)
    for i in range(n):
        quantiles[i] = min(max(q[i] + scale * offsets[i], low), high)
    pinball_gradient(quantiles, n, y, levels, out)
    release(w, used)


def pinball(q, n, y, levels):
    """Mean pinball loss of quantiles."""
    total = 0.0
    for i in range(n):
        error = y - q[i]
        total += levels[i] * error if error > 0.0 else (levels[i] - 1.0) * error
    return total / n


def is_cold(trackers, heard):
    """Whether the offsets are those of the pool: before the first outcome, in a pool with outcomes."""
    return trackers.pooled > 0 and heard > 0 and trackers.unit.count == 0.0


def first_awake(pooled, heard):
    """Index of the first tracker that is used: without a pool those that share in one are off."""
    return 0 if heard > 0 else pooled


def pool_offsets(trackers, signal, m):
    """Mean offsets of a pooled tracker in its pool, in units of the usual loss."""
    return cut(signal, POOL_SUMS + (trackers.pooled + m) * trackers.size, trackers.size)


def say(trackers, q, signal, heard, expected_loss, out):
    """Quantiles of each tracker; those of a stream without outcomes have the mean offsets of its pool."""
    n, low, high = trackers.size, trackers.low, trackers.high
    cold = is_cold(trackers, heard)
    for m in range(trackers.count):
        row = cut(out, m * n, n)
        if cold and m < trackers.pooled:
            offset_quantiles(q, n, pool_offsets(trackers, signal, m), expected_loss, low, high, row)
        else:
            offset_quantiles(q, n, cut(trackers.offsets, m * n, n), 1.0, low, high, row)


def gradients(trackers, q, signal, heard, expected_loss, y, out, number, w):
    """Gradients of the first `number` trackers at an outcome, at the current offsets."""
    n = trackers.size
    cold = is_cold(trackers, heard)
    for m in range(number):
        if cold and m < trackers.pooled:
            offsets, scale = pool_offsets(trackers, signal, m), expected_loss
        else:
            offsets, scale = cut(trackers.offsets, m * n, n), 1.0
        row = cut(out, m * n, n)
        offset_gradient(q, n, offsets, scale, trackers.low, trackers.high, y, trackers.levels, row, w)


def learn(trackers, q, signal, heard, expected_loss, y, w):
    """Step of each tracker; in a pool, with the gradients of all streams since the last one."""
    used = mark(w)
    own = take(w, trackers.count * trackers.size)
    gradients(trackers, q, signal, heard, expected_loss, y, own, trackers.count, w)
    step(trackers, q, signal, heard, expected_loss, y, own)
    release(w, used)


def step(trackers, q, signal, heard, expected_loss, y, own):
    """Step of each tracker, given the gradients of each."""
    levels = trackers.size
    unit, seen = trackers.unit, trackers.seen
    if is_cold(trackers, heard):
        for m in range(trackers.pooled):
            offsets = pool_offsets(trackers, signal, m)
            for i in range(levels):
                trackers.offsets[m * levels + i] = offsets[i] * expected_loss
    unit.loss = LOSS_DISCOUNT * unit.loss + 2.0 * pinball(q, levels, y, trackers.levels)
    unit.count = LOSS_DISCOUNT * unit.count + 1.0
    usual = unit.loss / unit.count
    most = FARTHEST * usual
    new = 0.0
    if heard > 0:
        new = signal[POOL_COUNT] - seen[POOL_COUNT]
    for m in range(first_awake(trackers.pooled, heard), trackers.count):
        size = trackers.options[m].step * UNIT * usual
        kept = 1.0 - trackers.options[m].leak
        share = trackers.options[m].share if new > 0.0 else 0.0
        for i in range(levels):
            gradient = own[m * levels + i]
            if share > 0.0:
                at = POOL_SUMS + m * levels + i
                gradient += share * ((signal[at] - seen[at]) / new - gradient)
            offset = kept * trackers.offsets[m * levels + i] - size * gradient
            trackers.offsets[m * levels + i] = min(max(offset, -most), most)
    if heard > 0:
        copy(signal, POOL_SUMS + trackers.pooled * levels, seen)
