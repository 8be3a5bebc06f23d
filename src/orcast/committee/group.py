"""Streams that share information: experts of one recalibrator, or all series and horizons of a frame."""

import cython
import numpy as np

from orcast.constants import PER_ABSOLUTE
from orcast.kernels.records import PREDICT, SETTLE

NAN = float("nan")
# Numbers of the mix of experts before its regrets: outcomes and running loss.
MIXING_SIZE = 2


def neighbours(series, ahead, step):
    """Number of the stream of the same series that is `step` further ahead; -1 if there is none."""
    place = {(int(s), int(h)): i for i, (s, h) in enumerate(zip(series, ahead, strict=True)) if h > 0}
    return [place.get((int(s), int(h) + step), -1) if h > 0 else -1 for s, h in zip(series, ahead, strict=True)]


def shortest_streams(series, ahead):
    """Number of the stream with the shortest horizon of each stream's series; -1 for itself."""
    least = {}
    for i, (s, h) in enumerate(zip(series, ahead, strict=True)):
        if h > 0 and (int(s) not in least or h < ahead[least[int(s)]]):
            least[int(s)] = i
    return [-1 if least.get(int(s), i) == i else least[int(s)] for i, s in enumerate(series)]


class Group:
    """Streams, their series and their pools.

    Parameters
    ----------
    plan : constants
    series, horizon : number of the series and of the pool of each stream
    ahead : steps from the newest known outcome to the target, 0 if unknown; it finds neighbouring horizons
    bounds : low and high of each stream
    seasons : two presumed seasons of each series, 0 for none
    pool_rows : rows of pools that others use too
    """

    def __init__(self, plan: Plan, series, horizon, ahead, bounds, seasons, pool_rows=None):
        series, horizon = np.asarray(series, dtype=np.int64), np.asarray(horizon, dtype=np.int64)
        self.plan, self.stream_count, self.series_count = plan, len(series), len(seasons)
        self.pool_count = int(horizon.max(initial=0)) + 1 if plan.pooled else 0
        self.source = series, horizon, np.asarray(ahead), np.asarray(bounds, dtype=np.float64), np.asarray(seasons)
        columns = (series, horizon, neighbours(series, ahead, -1), neighbours(series, ahead, 1))
        self.whole = np.concatenate((*columns, shortest_streams(series, ahead))).astype(np.int64)
        self.stream_rows = np.zeros((self.stream_count, plan.stream_size))
        self.series_rows = np.zeros((self.series_count, plan.series_size))
        self.pool_rows = np.zeros((self.pool_count, plan.pool_size)) if pool_rows is None else pool_rows
        self.pooling = None if pool_rows is None else pool_rows
        several = self.stream_count if self.stream_count > 1 and self.series_count == 1 else 0
        self.mixing = np.zeros(MIXING_SIZE + 2 * plan.knot_count * several)
        # equal weights at first; their number does not change the learning rate
        self.log_prior = np.zeros(max(several, 1))
        self.memo_size = self.stream_count * plan.memo_size + several * plan.level_count + plan.level_count
        self.point()
        for i in range(self.stream_count):
            new_stream(plan, cut(self.streams, i * plan.stream_size, plan.stream_size), bounds[i][0], bounds[i][1])
        for i in range(self.series_count):
            row = cut(self.series, i * plan.series_size, plan.series_size)
            new_series(plan, row, float(seasons[i][0]), float(seasons[i][1]))

    def point(self):
        """Let the fields of the group lie in its arrays."""
        n, whole = self.stream_count, whole_of(self.whole)
        self.series_of, self.pool_of = cut_whole(whole, 0, n), cut_whole(whole, n, n)
        self.below, self.above = cut_whole(whole, 2 * n, n), cut_whole(whole, 3 * n, n)
        self.shortest = cut_whole(whole, 4 * n, n)
        self.streams, self.series = numbers_of(self.stream_rows.reshape(-1)), numbers_of(self.series_rows.reshape(-1))
        # without a pool, any numbers
        rows = self.pool_rows if self.pool_count > 0 else self.stream_rows
        self.pools = numbers_of(rows.reshape(-1))
        self.mixing_row, self.prior_row = numbers_of(self.mixing), numbers_of(self.log_prior)

    def arrays(self):
        """All numbers that are carried from round to round, without those of pools that others use too."""
        found = {"streams": self.stream_rows, "series": self.series_rows, "mixing": self.mixing}
        return found if self.pooling is not None else {**found, "pools": self.pool_rows}

    def __reduce__(self):
        return restored_group, (self.plan, self.source, self.pooling, self.arrays())


def restored_group(plan, source, pooling, arrays):
    """Group from its arrays; for pickling."""
    group = Group(plan, *source, pooling)
    for name, array in group.arrays().items():
        array[...] = arrays[name]
    return group


def stream_row(plan, group, s):
    """Row of a stream."""
    return cut(group.streams, s * plan.stream_size, plan.stream_size)


def series_row(plan, group, s):
    """Row of the series of a stream."""
    return cut(group.series, group.series_of[s] * plan.series_size, plan.series_size)


def pool_row(plan, group, s):
    """Row of the pool of a stream; any row without a pool."""
    at = group.pool_of[s] if group.pool_count > 0 else 0
    return cut(group.pools, at * plan.pool_size, plan.pool_size)


def close_pools(plan, group):
    """End the time step of each pool that has new outcomes."""
    for i in range(group.pool_count):
        close_pool(plan, cut(group.pools, i * plan.pool_size, plan.pool_size))


# --- experts of one recalibrator


def predict_experts(plan, group, experts, time, memo, out, w):
    """Correct each expert, then mix them; an expert that is missing (nan) is left out. Only pools change."""
    used = mark(w)
    count = group.stream_count
    k = plan.level_count
    close_pools(plan, group)
    corrected = cut(memo, count * plan.memo_size, count * k)
    for e in range(count):
        row, own, q = stream_row(plan, group, e), cut(memo, e * plan.memo_size, plan.memo_size), cut(experts, e * k, k)
        known = as_known(own)
        if isnan(q[0]):
            known.time = NAN
            continue
        fill_known(
            plan, row, series_row(plan, group, e), pool_row(plan, group, e), time, q, known, cut(own, KNOWN_SIZE, k)
        )
        target = out if count == 1 else cut(corrected, e * k, k)
        predict_members(plan, row, pool_row(plan, group, e), q, own, target, w)
    if count > 1:
        mix_experts(plan, group, memo, out, w)
    release(w, used)


def mix_experts(plan, group, memo, out, w):
    """Mean of the corrected experts by level, weighted by their regrets."""
    used = mark(w)
    count = group.stream_count
    k, size = plan.level_count, plan.knot_count * count
    weights = take(w, size)
    regret, square = cut(group.mixing_row, MIXING_SIZE, size), cut(group.mixing_row, MIXING_SIZE + size, size)
    fill_weights(regret, square, group.prior_row, plan.knot_count, count, count, plan.constants.fastest, weights)
    leave_out_missing(plan, group, memo, weights)
    corrected, mix = cut(memo, count * plan.memo_size, count * k), cut(memo, count * (plan.memo_size + k), k)
    for i in range(k):
        total = 0.0
        mix[i] = 0.0
        for e in range(count):
            weight = level_weight(plan, weights, count, i, e)
            total += weight
            if weight > 0.0:
                mix[i] += weight / total * (corrected[e * k + i] - mix[i])
    sort(mix, k)
    copy(mix, k, out)
    release(w, used)


def leave_out_missing(plan, group, memo, weights):
    """Give no weight to experts that are missing; the others share it."""
    count = group.stream_count
    for j in range(plan.knot_count):
        total = 0.0
        for e in range(count):
            if isnan(as_known(cut(memo, e * plan.memo_size, plan.memo_size)).time):
                weights[j * count + e] = 0.0
            total += weights[j * count + e]
        for e in range(count):
            weights[j * count + e] /= total


def update_experts(plan, group, memo, y, late, w):
    """Learn from the outcome of a round."""
    count = group.stream_count
    time = NAN
    if count > 1:
        learn_mixing(plan, group, memo, y, w)
    for e in range(count):
        own = cut(memo, e * plan.memo_size, plan.memo_size)
        known = as_known(own)
        if isnan(known.time):
            continue
        time = known.time
        update_stream(plan, stream_row(plan, group, e), pool_row(plan, group, e), own, y, late, w)
    observe(plan, series_row(plan, group, 0), time, working(as_stream(group.streams), y))


def learn_mixing(plan, group, memo, y, w):
    """Update the weights of the experts; one that is missing has no regret."""
    used = mark(w)
    count, mixing = group.stream_count, group.mixing_row
    k, size = plan.level_count, plan.knot_count * count
    corrected, mix = cut(memo, count * plan.memo_size, count * k), cut(memo, count * (plan.memo_size + k), k)
    mixing[0] += 1.0
    loss, least = pinball(plan, mix, y), smallest_loss(plan, mix)
    if mixing[1] > 0.0:
        loss = min(loss, MOST_SIZE * max(mixing[1], least))
    mixing[1] += max(1.0 / mixing[0], SIZE_RATE) * (loss - mixing[1])
    r, lag = take(w, size), 1.0
    for e in range(count):
        own = cut(memo, e * plan.memo_size, plan.memo_size)
        if isnan(as_known(own).time):
            copy(mix, k, cut(corrected, e * k, k))
        lag = max(lag, as_stream(stream_row(plan, group, e)).lag)
    fill_regrets(plan, corrected, count, mix, y, max(mixing[1], least), r)
    regret, square = cut(mixing, MIXING_SIZE, size), cut(mixing, MIXING_SIZE + size, size)
    add_regrets(regret, square, r, size, plan.constants.discount, 1.0, lag)
    release(w, used)


def predict(group, experts, time):
    """Corrected quantiles of a round and its memo; `experts` has a row for each, nan where one is missing."""
    plan, w = group.plan, workspace()
    memo, found = np.zeros(group.memo_size), np.empty(plan.level_count)
    flat = experts.reshape(-1)
    rows, row, out = readable_of(flat), numbers_of(memo), numbers_of(found)
    with cython.nogil:
        predict_experts(plan, group, rows, time, row, out, w)
    return found, memo


def update(group, memo, y, late):
    """Learn from the outcome of a round; `late` others were issued before it was known."""
    plan, w = group.plan, workspace()
    row = numbers_of(memo)
    with cython.nogil:
        update_experts(plan, group, row, y, late, w)


# --- frames


class GroupRun:
    """Rounds of all streams of a group in the order of time; pending rows come first, then new ones.

    `time` is the target in steps of the series; `value` nan if unknown. `base` is filled in for point forecasts, whose
    `spreads` are those before any error is known; `prior` is filled in. `reach` has the lowest and highest quantile of
    each stream, `capacity` is the largest number of rounds pending at once.
    """

    def __init__(self, group: Group, stream, time, value, base, prior, capacity, points=None, spreads=None, reach=None):
        rows, k = len(stream), group.plan.level_count
        self.group, self.has_points = group, points is not None
        none = np.zeros(0)
        self.memo_rows = np.zeros((capacity, group.plan.memo_size))
        self.place = np.full(rows, -1, dtype=np.int64)
        # number of free places, then these: the next one is the last
        self.free = np.arange(capacity, -1, -1, dtype=np.int64)
        self.whole = tuple(np.require(each, np.int64, ("C", "W")) for each in (stream, time))
        given = (value, none if points is None else points, none if spreads is None else spreads)
        given += (none if reach is None else reach,)
        self.numbers = tuple(np.require(each, np.float64, ("C", "W")).reshape(-1) for each in given)
        self.base, self.prior = base, prior
        if base.shape != (rows, k) or prior.shape != (rows, k):
            raise ValueError(f"expected base and prior of shape {(rows, k)}, got {base.shape} and {prior.shape}")
        self.stream_, self.time_ = whole_of(self.whole[0]), whole_of(self.whole[1])
        self.value_, self.points_ = numbers_of(self.numbers[0]), numbers_of(self.numbers[1])
        self.spreads_, self.reach_ = numbers_of(self.numbers[2]), numbers_of(self.numbers[3])
        self.base_, self.prior_ = numbers_of(base.reshape(-1)), numbers_of(prior.reshape(-1))
        self.memos_ = numbers_of(self.memo_rows.reshape(-1))
        self.place_, self.free_ = whole_of(self.place), whole_of(self.free)

    def resume(self, memos):
        """Let the first rows be pending, with their memos."""
        old = len(memos)
        self.memo_rows[:old] = memos
        self.place[:old] = np.arange(old)
        self.free[0] = len(self.memo_rows) - old

    def memos(self, rows):
        """Memos of rows that are pending."""
        return self.memo_rows[self.place[rows]]

    def run_rounds(self, events):
        """Run events: kind, row and moment of each; forecasts of one moment are issued together."""
        group, plan, w = self.group, self.group.plan, workspace()
        flat = np.ascontiguousarray(events, dtype=np.int64).reshape(-1)
        count, row = len(events), whole_of(flat)
        with cython.nogil:
            run_events(plan, group, self, row, count, w)


def run_events(plan, group, run, events, count, w):
    """Run events in their order."""
    i = 0
    while i < count:
        kind = events[3 * i]
        if kind != PREDICT:
            if kind == SETTLE:
                settle_row(plan, group, run, events[3 * i + 1], w)
            free_place(run, events[3 * i + 1])
            i += 1
            continue
        end = i + 1
        while end < count and events[3 * end] == PREDICT and events[3 * end + 2] == events[3 * i + 2]:
            end += 1
        close_pools(plan, group)
        for j in range(i, end):
            open_row(plan, group, run, events[3 * j + 1])
        for j in range(i, end):
            issue_row(plan, group, run, events[3 * j + 1], w)
        i = end


def free_place(run, row):
    """Give back the place of a row."""
    if run.place_[row] >= 0:
        run.free_[0] += 1
        run.free_[run.free_[0]] = run.place_[row]
        run.place_[row] = -1


def open_row(plan, group, run, row):
    """Note the base median of a forecast, for those that are issued with it."""
    k, s = plan.level_count, run.stream_[row]
    stream, q = as_stream(stream_row(plan, group, s)), cut(run.base_, row * k, k)
    if run.has_points:
        spread = run.spreads_[row]
        if stream.error_count > 0.0:
            spread = PER_ABSOLUTE * stream.error_sum / stream.error_count
            run.spreads_[row] = spread
        for i in range(k):
            value = run.points_[row] + spread * plan.scores[i]
            q[i] = min(max(value, run.reach_[2 * s]), run.reach_[2 * s + 1])
    stream.median_before = stream.median
    stream.target_before = stream.target
    stream.median = working(stream, q[plan.middle])
    stream.target = float(run.time_[row])


def median_for(plan, group, s, target):
    """Median of the last forecast of a stream, if it is for a time; else nan."""
    if s < 0:
        return NAN
    stream = as_stream(stream_row(plan, group, s))
    return stream.median if stream.target == target else NAN


def median_before_for(plan, group, s, target):
    """Median of the forecast before the last one of a stream, if it is for a time; else nan."""
    if s < 0:
        return NAN
    stream = as_stream(stream_row(plan, group, s))
    return stream.median_before if stream.target_before == target else NAN


def issue_row(plan, group, run, row, w):
    """Issue the forecast of a row."""
    k, s, time = plan.level_count, run.stream_[row], float(run.time_[row])
    place = run.free_[run.free_[0]]
    run.free_[0] -= 1
    run.place_[row] = place
    memo, q = cut(run.memos_, place * plan.memo_size, plan.memo_size), cut(run.base_, row * k, k)
    known, numbers, pool = as_known(memo), stream_row(plan, group, s), pool_row(plan, group, s)
    fill_known(plan, numbers, series_row(plan, group, s), pool, time, q, known, cut(memo, KNOWN_SIZE, k))
    known.below = median_for(plan, group, group.below[s], time - 1.0)
    known.above = median_for(plan, group, group.above[s], time + 1.0)
    known.before = median_before_for(plan, group, group.above[s], time)
    first = group.shortest[s]
    if first >= 0:
        known.error_short = as_stream(stream_row(plan, group, first)).error_0
        if known.active > 0.0:
            known.common_short = as_pool(pool_row(plan, group, first)).error
    elif known.active > 0.0:
        known.common_short = known.common
    stream = as_stream(numbers)
    stream.issued += 1.0
    known.serial = stream.issued
    predict_members(plan, numbers, pool, q, memo, cut(run.prior_, row * k, k), w)


def settle_row(plan, group, run, row, w):
    """Learn from the outcome of a row."""
    s, y = run.stream_[row], run.value_[row]
    memo = cut(run.memos_, run.place_[row] * plan.memo_size, plan.memo_size)
    stream, known = as_stream(stream_row(plan, group, s)), as_known(memo)
    update_stream(plan, stream_row(plan, group, s), pool_row(plan, group, s), memo, y, stream.issued - known.serial, w)
    observe(plan, series_row(plan, group, s), known.time, working(stream, y))
    if run.has_points:
        stream.error_sum += fabs(y - run.points_[row])
        stream.error_count += 1.0
