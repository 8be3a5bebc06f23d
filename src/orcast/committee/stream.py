"""One stream of a committee: members predict, their quantiles are mixed by level, and level offsets follow.

    base --members--> quantiles --weights--> mix --offsets--> corrected quantiles

Nothing is used before `update` gives it. Weights and offsets are also learnt over a pool, in which the mean over the
series of a time step is one observation, so that a common shock counts once.
"""

# Smallest rates of the running sizes of errors and of the base forecast's loss, and of the mean lag.
SIZE_RATE, LAG_RATE, MOST_LAG = 0.03, 0.02, 200.0
# An error or a loss enters its running size as at most this many usual ones: a broken sensor is forgotten soon.
MOST_SIZE = 10.0
# Share of the running error in the unit of errors; the rest is the base forecast's spread.
UNIT_SHARE = 0.7
# Smallest spread: a share of the running error, and of the median.
LEAST_SPREAD, LEAST_SHARE = 0.05, 1e-9
# Smallest loss of the base forecast that regrets are measured in, as a share of its spread.
LEAST_LOSS = 0.15
MOST_ERROR = 8.0
# A base median that is further from the newest outcome than this many usual distances may foresee a change.
FAR = 4.0
# A base quantile at a bound stays there if it is moved by less than this share of the range of the base quantiles.
NEAR = 0.05


def working(stream, value):
    """Value in the working scale: the root of the distance from a bound, or the value itself."""
    if stream.root > 0.0:
        return sqrt(max(value - stream.low, 0.0))
    if stream.root < 0.0:
        return -sqrt(max(stream.high - value, 0.0))
    return value


def original(stream, value):
    """Value in the scale of the outcomes, within the bounds."""
    if stream.root > 0.0:
        value = max(value, 0.0)
        return min(stream.low + value * value, stream.high)
    if stream.root < 0.0:
        value = min(value, 0.0)
        return stream.high - value * value
    return min(max(value, stream.low), stream.high)


def on_atom(stream, value):
    """Value, or a bound that has outcomes and is nearer than half of the gap beside it: counts, rain, saturation."""
    if stream.at_low > 0.0 and value - stream.low < 0.5 * stream.gap_low:
        return stream.low
    if stream.at_high > 0.0 and stream.high - value < 0.5 * stream.gap_high:
        return stream.high
    return value


def keep_atom(stream, q, k, i, out):
    """Leave a base quantile at a bound that has outcomes there, unless it is moved by far."""
    near = NEAR * (q[k - 1] - q[0])
    if stream.at_low > 0.0 and q[i] <= stream.low and out[i] - stream.low < near:
        out[i] = stream.low
    if stream.at_high > 0.0 and q[i] >= stream.high and stream.high - out[i] < near:
        out[i] = stream.high


def count_atoms(stream, y):
    """Count an outcome at a bound, or note how near to it others come."""
    above, below = y - stream.low, stream.high - y
    if above <= 0.0:
        stream.at_low += 1.0
    elif stream.gap_low == 0.0 or above < stream.gap_low:
        stream.gap_low = above
    if below <= 0.0:
        stream.at_high += 1.0
    elif stream.gap_high == 0.0 or below < stream.gap_high:
        stream.gap_high = below


def smallest_spread(median):
    """Smallest spread of a base forecast with a median: that of rounding."""
    return max(LEAST_SHARE * fabs(median), 1e-140)


def cut_size(known, size):
    """Size of an error, cut to usual ones; a base forecast without spread that made no error yet has none."""
    return min(size, MOST_SIZE * known.unit) if known.spread > 2.0 * smallest_spread(known.median) else size


def fill_known(plan, row, series_row, pool, time, q, known, base):
    """Fill the base quantiles and the information about outcomes and errors at the time of a forecast."""
    stream, series, k = as_stream(row), as_series(series_row), plan.level_count
    for i in range(k):
        base[i] = working(stream, q[i])
    median = base[plan.middle]
    spread = 0.0
    for i in range(k):
        spread += fabs(base[i] - median)
    known.time = time
    known.median = median
    newest = newest_of(series)
    known.last = median if isnan(newest) else series.y_0
    least = smallest_spread(median)
    known.spread = max(spread / k, LEAST_SPREAD * stream.scale, least)
    known.unit = known.spread
    if stream.outcomes > 0.0:
        known.unit += UNIT_SHARE * (max(stream.scale, least) - known.spread)
    known.trust = 1.0
    if stream.outcomes > 0.0:
        usual = FAR * max(stream.move, known.unit)
        move = fabs(known.last - median)
        if move > usual:
            known.trust = usual / move * (usual / move)
    known.lag = stream.lag
    known.active = 1.0 if plan.pooled and as_pool(pool).streams >= 2.0 else 0.0
    count = as_pool(pool).steps if known.active > 0.0 else stream.outcomes
    known.evidence = count / known.lag
    constants = plan.constants
    known.reach = min(constants.reach * (1.0 + known.evidence / constants.reach_growth), constants.reach_most)
    known.y_0 = known.y_1 = known.y_2 = known.mean = NAN
    if series.outcomes > 0.0:
        known.y_0, known.y_1, known.y_2, known.mean = series.y_0, series.y_1, series.y_2, series.mean
    last_error = stream.newest if stream.outcomes > 0.0 else NAN
    outcomes, errors = cut(series_row, SERIES_SIZE + SEASON_COUNT, RING), cut(row, STREAM_SIZE, RING)
    short_season, long_season = series.short_season, series.long_season
    known.season = season_before(outcomes, newest, time, short_season)
    known.long_season = season_before(outcomes, newest, time, long_season)
    known.season_now = ring_at(outcomes, newest, newest - short_season) if short_season > 0.0 else NAN
    known.long_now = ring_at(outcomes, newest, newest - long_season) if long_season > 0.0 else NAN
    known.error_season = season_before(errors, last_error, time, short_season)
    known.error_long = season_before(errors, last_error, time, long_season)
    known.error_0, known.error_1, known.error_short = stream.error_0, stream.error_1, stream.error_2
    known.below = known.above = known.before = NAN
    known.common = as_pool(pool).error if known.active > 0.0 else 0.0
    known.common_short = 0.0


def fill_mix(plan, row, pool, known, memo, w):
    """Mix the quantiles of the members by level."""
    used = mark(w)
    k, members, knots, constants = plan.level_count, plan.member_count, plan.knot_count, plan.constants
    size = knots * members
    weights = take(w, size)
    regret, square = cut(row, plan.weights_at, size), cut(row, plan.weights_at + size, size)
    if known.active == 0.0:
        fill_weights(regret, square, plan.log_prior_alone, knots, members, plan.alone_count, constants.fastest, weights)
    else:
        fill_weights(regret, square, plan.log_prior, knots, members, members, constants.fastest, weights)
        pooled = cut(pool, POOL_SIZE + 2 * size, size)
        for i in range(size):
            weights[i] += constants.pool_share * (pooled[i] - weights[i])
    n = known.evidence + 1e-3
    trusted = n / (n + constants.probation)
    for j in range(knots):
        total = weights[j * members]
        for m in range(1, members):
            weights[j * members + m] *= trusted
            total += weights[j * members + m]
        for m in range(members):
            weights[j * members + m] /= total
    quantiles, mix = cut(memo, plan.quantiles_at, members * k), cut(memo, plan.quantiles_at + members * k, k)
    for i in range(k):
        mix[i] = quantiles[i]
        for m in range(1, members):
            mix[i] += level_weight(plan, weights, members, i, m) * (quantiles[m * k + i] - quantiles[i])
    sort(mix, k)
    release(w, used)


def fill_offsets(plan, row, pool, known, memo):
    """Add the level offsets to the mix, in the working scale; the result is not sorted.

    Offsets are in units of the usual error of the mix, relative to that of the base forecast as it is now, so that they
    follow a change of scale.
    """
    stream, k = as_stream(row), plan.level_count
    mix = cut(memo, plan.quantiles_at + plan.member_count * k, k)
    shown = cut(memo, plan.quantiles_at + (plan.member_count + 1) * k, k)
    offsets, common = cut(row, plan.offsets_at, k), cut(pool, plan.pool_offsets_at, k)
    scale = 2.0 * known.unit * (stream.mix_scale if stream.outcomes > 0.0 else 1.0)
    for i in range(k):
        shown[i] = working(stream, mix[i]) + scale * offsets[i]
        if known.active > 0.0:
            shown[i] += scale * common[i]


def predict_members(plan, row, pool, q, memo, out, w):
    """Fill the memo of a forecast, whose information is known, and the corrected quantiles."""
    used = mark(w)
    stream, known, k = as_stream(row), as_known(memo), plan.level_count
    base, values = cut(memo, KNOWN_SIZE, k), take(w, k)
    copy(q, k, cut(memo, plan.quantiles_at, k))
    for m in range(1, plan.member_count):
        options = cut(plan.options, m * OPTIONS, OPTIONS)
        state_size, memo_size = plan.state_at[m + 1] - plan.state_at[m], plan.memo_at[m + 1] - plan.memo_at[m]
        state = cut(row, plan.members_at + plan.state_at[m], state_size)
        shared = shared_of(plan, row, pool, m)
        plan.predicts[m](
            plan, options, known, base, state, shared, cut(memo, plan.memos_at + plan.memo_at[m], memo_size), values, w
        )
        sort(values, k)
        quantiles = cut(memo, plan.quantiles_at + m * k, k)
        for i in range(k):
            quantiles[i] = original(stream, values[i])
    fill_mix(plan, row, pool, known, memo, w)
    fill_offsets(plan, row, pool, known, memo)
    shown = cut(memo, plan.quantiles_at + (plan.member_count + 1) * k, k)
    for i in range(k):
        out[i] = q[i] if isnan(shown[i]) else on_atom(stream, original(stream, shown[i]))
        keep_atom(stream, q, k, i, out)
    sort(out, k)
    release(w, used)


def shared_of(plan, row, pool, m):
    """Numbers that a member shares in a pool."""
    if plan.pooled:
        size = plan.shared_at[m + 1] - plan.shared_at[m]
        return cut(pool, plan.pool_members_at + plan.shared_at[m], size)
    return row


def learn_offsets(plan, row, pool, known, memo, y):
    """Step of the level offsets: a quantile that is met too seldom moves outwards.

    The part that moves both tails alike, a shift, is divided by the lag, the part that moves them apart by its root.
    Each level is compared with its own quantile before sorting: compared with sorted ones the offsets run away.
    """
    stream, k, constants = as_stream(row), plan.level_count, plan.constants
    shown = cut(memo, plan.quantiles_at + (plan.member_count + 1) * k, k)
    offsets, sums = cut(row, plan.offsets_at, k), cut(pool, plan.pool_sums_at + plan.knot_count * plan.member_count, k)
    mix = working(stream, memo[plan.quantiles_at + plan.member_count * k + plan.middle])
    size = min(fabs(y - mix) / known.unit, MOST_SIZE)
    stream.mix_scale += max(1.0 / stream.outcomes, SIZE_RATE) * (size - stream.mix_scale)
    rate = constants.offset / (1.0 + stream.outcomes / stream.lag / constants.offset_half)
    if known.active > 0.0:
        rate *= constants.offset_own
    late = sqrt(stream.lag)
    for i in range(k):
        other = plan.mirror[i]
        miss = plan.levels[i] - (1.0 if y <= shown[i] else 0.0)
        opposite = plan.levels[other] - (1.0 if y <= shown[other] else 0.0)
        width = 0.5 * (miss - opposite) / late
        offsets[i] += rate * (constants.offset_shift * 0.5 * (miss + opposite) / stream.lag + width)
        if plan.pooled:
            sums[i] += width


def pinball(plan, q, y):
    """Mean pinball loss over the levels."""
    total = 0.0
    for i in range(plan.level_count):
        d = y - q[i]
        total += plan.levels[i] * d if d > 0.0 else (plan.levels[i] - 1.0) * d
    return total / plan.level_count


def smallest_loss(plan, q):
    """Smallest loss that regrets are measured in."""
    spread = 0.0
    for i in range(plan.level_count):
        spread += fabs(q[i] - q[plan.middle])
    return max(LEAST_LOSS * spread / plan.level_count, 1e-12 * fabs(q[plan.middle]), 1e-280)


def learn_weights(plan, row, pool, memo, y, w):
    """Update the weights with the regrets of a round."""
    used = mark(w)
    stream, k, members = as_stream(row), plan.level_count, plan.member_count
    size = plan.knot_count * members
    quantiles, mix = cut(memo, plan.quantiles_at, members * k), cut(memo, plan.quantiles_at + members * k, k)
    loss, least = pinball(plan, quantiles, y), smallest_loss(plan, quantiles)
    if stream.loss > 0.0:
        loss = min(loss, MOST_SIZE * max(stream.loss, least))
    stream.loss += max(1.0 / stream.outcomes, SIZE_RATE) * (loss - stream.loss)
    unit = max(stream.loss, least)
    r = take(w, size)
    fill_regrets(plan, quantiles, members, mix, y, unit, r)
    regret, square = cut(row, plan.weights_at, size), cut(row, plan.weights_at + size, size)
    add_regrets(regret, square, r, size, plan.constants.discount, 1.0, stream.lag)
    if plan.pooled:
        sums = cut(pool, plan.pool_sums_at, size)
        for i in range(size):
            sums[i] += r[i]
    release(w, used)


def update_stream(plan, row, pool, memo, outcome, late, w):
    """Learn from the outcome of a round; `late` forecasts were issued after it, before its outcome was known."""
    stream, known, k = as_stream(row), as_known(memo), plan.level_count
    y = working(stream, outcome)
    lag = 1.0 + min(late, MOST_LAG)
    stream.lag += max(1.0 / (stream.outcomes + 1.0), LAG_RATE) * (lag - stream.lag)
    base = cut(memo, KNOWN_SIZE, k)
    for m in range(1, plan.member_count):
        options = cut(plan.options, m * OPTIONS, OPTIONS)
        state_size, memo_size = plan.state_at[m + 1] - plan.state_at[m], plan.memo_at[m + 1] - plan.memo_at[m]
        state = cut(row, plan.members_at + plan.state_at[m], state_size)
        own = cut(memo, plan.memos_at + plan.memo_at[m], memo_size)
        plan.updates[m](plan, options, known, base, state, shared_of(plan, row, pool, m), own, y, stream.lag)
    count_atoms(stream, outcome)
    error = y - known.median
    size = cut_size(known, fabs(error))
    stream.scale += max(1.0 / (stream.outcomes + 1.0), SIZE_RATE) * (size - stream.scale)
    move = min(fabs(known.last - known.median), MOST_SIZE * max(stream.move, known.unit))
    stream.move += max(1.0 / (stream.outcomes + 1.0), SIZE_RATE) * (move - stream.move)
    stream.outcomes += 1.0
    if plan.member_count > 1:
        learn_offsets(plan, row, pool, known, memo, y)
    newest = stream.newest if stream.outcomes > 1.0 else NAN
    stream.newest = ring_put(cut(row, STREAM_SIZE, RING), newest, known.time, error)
    if not known.time < newest:
        stream.error_2 = stream.error_1
        stream.error_1 = stream.error_0
        stream.error_0 = error
    if plan.member_count > 1:
        learn_weights(plan, row, pool, memo, outcome, w)
    if plan.pooled:
        shared = as_pool(pool)
        if stream.outcomes == 1.0:
            shared.streams += 1.0
        shared.lag = stream.lag
        shared.count += 1.0
        shared.error_sum += min(max(error / known.unit, -MOST_ERROR), MOST_ERROR)


def close_pool(plan, pool):
    """End a time step of a pool: the mean over its outcomes is one observation, less if streams are missing."""
    shared = as_pool(pool)
    if shared.count == 0.0:
        return
    k, knots, members, constants = plan.level_count, plan.knot_count, plan.member_count, plan.constants
    size = knots * members
    count, weight, lag = shared.count, min(shared.count / shared.streams, 1.0), shared.lag
    shared.steps += weight
    shared.error += weight * (shared.error_sum / count - shared.error)
    sums = cut(pool, plan.pool_sums_at, size + k)
    offsets = cut(pool, plan.pool_offsets_at, k)
    rate = weight * constants.offset_pool / (1.0 + shared.steps / constants.offset_half)
    for i in range(k):
        offsets[i] += rate * sums[size + i] / count
    for i in range(size):
        sums[i] /= count
    regret, square = cut(pool, POOL_SIZE, size), cut(pool, POOL_SIZE + size, size)
    add_regrets(regret, square, sums, size, constants.discount, weight, lag)
    weights = cut(pool, POOL_SIZE + 2 * size, size)
    fill_weights(regret, square, plan.log_prior, knots, members, members, constants.fastest, weights)
    for i in range(size + k):
        sums[i] = 0.0
    for m in range(1, members):
        options = cut(plan.options, m * OPTIONS, OPTIONS)
        plan.closes[m](plan, options, shared_of(plan, pool, pool, m), weight, lag)
    shared.count = shared.error_sum = 0.0
