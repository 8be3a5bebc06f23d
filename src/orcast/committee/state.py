"""State of a committee: its plan, and the rows of numbers of its streams, series, pools and pending rounds.

A stream is one series at one horizon with one expert. Everything has a constant size. Quantiles are kept at the levels
of the plan; the working scale is the square root of the distance from a bound (`root_of`), or that of the outcomes.
"""

import cython
import numpy as np

from orcast.constants import LONGEST_SEASON
from orcast.kernels.records import struct_members

NAN, INF = float("nan"), float("inf")
# No bound is larger than this; a number that stands for none.
FARTHEST, EMPTY = 1e110, -1e149
# Numbers of a ring of outcomes or errors.
RING = LONGEST_SEASON
# Levels at which weights are kept; they are interpolated between them.
KNOTS = 9
# Seasons that are looked for, in steps: short ones and long ones.
SEASONS = (7, 12, 24, 48, 96, 52, 168, 288, 336, 365)
SHORT_SEASONS = 5
OPTIONS = 2

# Constants of a plan; n is the number of outcomes (in a pool: of time steps) over the lag.
CONSTANTS = {
    "prior_base": 0.75,  # prior weight of the base forecast; the other members share the rest
    "discount": 0.9995,  # of regrets
    "fastest": 0.5,  # largest learning rate
    "clip": 3.0,  # largest regret, in units of the base forecast's usual loss
    "probation": 10.0,  # members other than the base forecast use n / (n + probation) of their weight
    "reach": 2.0,  # a member's centre stays within reach (1 + n / reach_growth) units of the base median
    "reach_growth": 25.0,
    "reach_most": 10.0,
    "ridge": 10.0,  # prior observations of a regression (times the lag), own and of a pool
    "pool_ridge": 5.0,
    "trace": 50.0,  # largest trace of a covariance
    "spread_0": 20.0,  # prior observations of the spread (times the lag): constant, sizes of errors, other features
    "spread_1": 3.0,
    "spread_2": 10.0,
    "shape": 50.0,  # prior observations of its shape
    "spread_forget": 0.999,  # forgetting of the spread's equations, own and of a pool
    "pool_forget": 0.97,
    "pool_share": 0.5,  # weight of the pool's weights in a pool
    "pooled": 3.0,  # observations that a time step of the pool, and an own outcome, count for the spread in a pool
    "own": 0.3,
    "offset": 0.04,  # rates of the level offsets, own and of a pool; they fall as 1 / (1 + n / offset_half)
    "offset_pool": 0.28,
    "offset_half": 50.0,
    "offset_shift": 0.3,  # factors of the offsets' rate: of the part that moves both tails alike, and in a pool
    "offset_own": 0.2,
    "memory_lag": 1.0,  # a regression remembers outcomes for lag^memory_lag times as long
}
STRUCTS = struct_members("committee/state")
CONSTANT_NAMES = STRUCTS["Constants"]
# Information at the time of a forecast, in the working scale; nan if unknown. unit: of errors; lag: rounds until an
# outcome is known; evidence: outcomes over lag; reach: largest distance of a centre from the median; active: 1 in a
# pool of several streams; last: newest outcome, or the median; trust: factor of features that compare outcomes with
# the median, below 1 where the base forecast moves further than usual; y_0, y_1, y_2: newest outcomes; season, long:
# outcome a whole number of seasons before the target, and (now) one season before the newest; below, above: base
# medians one step nearer and further, issued together; before: base median for the same time, issued one step before;
# error_0, error_1: newest errors of the base median, error_short: newest one of the shortest horizon; common: newest
# mean error of the pool and of the pool of the shortest horizon, in units.
KNOWN = STRUCTS["Known"]
# outcomes; scale: running size of the base median's error; loss: running loss of the base forecast; lag: mean rounds
# until an outcome is known; issued: forecasts; newest: time of the newest error; median, target: of the last forecast,
# and of the one before; mix_scale: running size of the mix's error, in spreads of the base forecast;
# move: running distance of the base median from the newest outcome; at_low, at_high: outcomes at the
# bounds; gap_low, gap_high: smallest distance of another one from them; error_sum, error_count: of point forecasts.
STREAM = STRUCTS["Stream"]
# outcomes; mean, size: running mean and mean distance from it; power: discounted sum of squared steps; newest: time of
# the newest outcome; y_0, y_1, y_2: newest outcomes; short_season, long_season: in use (0: none); presumed ones stay.
SERIES = STRUCTS["Series"]
# steps: time steps so far; streams: with an outcome; lag: of the last outcome; error: newest mean error of the base
# medians, in units; count, error_sum: of the time step that is not closed.
POOL = STRUCTS["Pool"]

if not cython.compiled:
    as_known, as_stream, as_series, as_pool = map(struct, (KNOWN, STREAM, SERIES, POOL))
    as_constants = struct(CONSTANT_NAMES)

KNOWN_SIZE, STREAM_SIZE, SERIES_SIZE, POOL_SIZE = len(KNOWN), len(STREAM), len(SERIES), len(POOL)
SEASON_COUNT = len(SEASONS)


class Member:
    """Member of a committee: functions on rows of numbers, and the sizes of its rows.

    predict(plan, options, known, base, state, shared, memo, out, w)
        Fill `out` with quantiles in the working scale, and `memo` with numbers that `update` needs.
    update(plan, options, known, base, state, shared, memo, y, lag)
        Learn from the outcome; `shared` is what the streams of a pool have in common.
    close(plan, options, shared, weight, lag)
        End a time step of a pool; its weight is the share of the streams that have an outcome in it.

    All rows start with zeros. A size (a, b) is a + b numbers a level; `share` is the member's share of the prior weight
    beside the base forecast.
    """

    def __init__(self, name, state=(0, 0), memo=(0, 0), shared=(0, 0), options=(), share=1.0):
        self.name, self.state, self.memo, self.shared, self.share = name, state, memo, shared, share
        self.options = (*options, *(0.0,) * (OPTIONS - len(options)))


def starts(sizes, levels):
    """Start of each row among rows that lie one behind the other, and the end."""
    return np.cumsum([0] + [a + b * levels for a, b in sizes]).astype(np.int64)


def log_priors(base, shares):
    """Logarithms of prior weights: that of the base forecast, and the rest by the shares of the other members."""
    rest = np.array(shares[1:])
    return np.log(np.concatenate(([base], (1.0 - base) * rest / rest.sum()))) if len(rest) else np.zeros(1)


class Plan:
    """Constants of a committee: levels, members, and where the numbers of each lie in its rows.

    The base forecast is the first member. The first `alone` members take part where a pool has one stream only;
    `constants` replace those of CONSTANTS.
    """

    def __init__(self, levels, scores, members, pooled, alone, **constants):
        self.members, self.pooled, self.alone_count = tuple(members), pooled, alone
        self.level_count, self.member_count = len(levels), len(self.members)
        k, count = len(levels), len(self.members)
        if k < 2:
            raise ValueError(f"expected at least 2 levels, got {k}")
        knots = np.quantile(levels, np.linspace(0.0, 1.0, min(KNOTS, k)))
        self.knot_count = len(knots)
        at = np.clip(np.searchsorted(knots, levels, side="right") - 1, 0, len(knots) - 2)
        share = (levels - knots[at]) / (knots[at + 1] - knots[at])
        full = np.zeros(len(knots))
        np.add.at(full, at, 1.0 - share)
        np.add.at(full, at + 1, share)
        mirror = np.abs(np.subtract.outer(1.0 - np.asarray(levels), levels)).argmin(axis=1)
        values = {**CONSTANTS, **constants}
        shares = [member.share for member in self.members]
        prior = log_priors(values["prior_base"], shares)
        prior_alone = log_priors(values["prior_base"], shares[: self.alone_count])
        shape = 1.25 * np.asarray(scores)
        density = np.maximum(np.exp(-0.5 * np.asarray(scores) ** 2) / np.sqrt(2.0 * np.pi) / 1.25, 0.02)
        arrays = (levels, scores, share, full, shape, density, prior, [values[name] for name in CONSTANT_NAMES])
        arrays += (np.array([m.options for m in self.members]).ravel(), prior_alone)
        self.row = np.concatenate([np.asarray(array, dtype=np.float64) for array in arrays])
        ends = np.cumsum([0] + [len(array) for array in arrays])
        row = numbers_of(self.row)
        self.levels = cut(row, ends[0], k)
        self.scores = cut(row, ends[1], k)
        self.knot_share = cut(row, ends[2], k)
        self.knot_full = cut(row, ends[3], len(knots))
        self.shape = cut(row, ends[4], k)
        self.density = cut(row, ends[5], k)
        self.log_prior = cut(row, ends[6], count)
        self.constants = as_constants(cut(row, ends[7], len(CONSTANT_NAMES)))
        self.options = cut(row, ends[8], count * OPTIONS)
        self.log_prior_alone = cut(row, ends[9], self.alone_count)
        tables = [starts([getattr(m, name) for m in self.members], k) for name in ("state", "memo", "shared")]
        self.whole = np.concatenate((at, mirror, *tables, SEASONS)).astype(np.int64)
        whole = whole_of(self.whole)
        self.knot_at = cut_whole(whole, 0, k)
        self.mirror = cut_whole(whole, k, k)
        self.state_at = cut_whole(whole, 2 * k, count + 1)
        self.memo_at = cut_whole(whole, 2 * k + count + 1, count + 1)
        self.shared_at = cut_whole(whole, 2 * k + 2 * (count + 1), count + 1)
        self.seasons = cut_whole(whole, 2 * k + 3 * (count + 1), SEASON_COUNT)
        self.middle = int(np.argmin(np.abs(np.asarray(levels) - 0.5)))
        weights = self.knot_count * count
        state, memo, shared = (int(table.max()) for table in tables)
        self.series_size = SERIES_SIZE + SEASON_COUNT + RING
        self.weights_at = STREAM_SIZE + RING
        self.offsets_at = self.weights_at + 2 * weights
        self.members_at = self.offsets_at + k
        self.stream_size = self.members_at + state
        # base quantiles, memos, quantiles of the members, mix, and quantiles with their offsets, not sorted
        self.memos_at = KNOWN_SIZE + k
        self.quantiles_at = self.memos_at + memo
        self.memo_size = self.quantiles_at + (count + 2) * k
        # regrets, squares, weights; offsets; sums of the step: regrets and misses; then what members share
        self.pool_offsets_at = POOL_SIZE + 3 * weights
        self.pool_sums_at = self.pool_offsets_at + k
        self.pool_members_at = self.pool_sums_at + weights + k
        self.pool_size = (self.pool_members_at + shared) if pooled else 0
        if not cython.compiled:
            self.predicts, self.updates, self.closes = {}, {}, {}
        self.attach()

    def __reduce__(self):
        from orcast.committee.members import cached_plan

        return cached_plan, self.source

    def attach(self):
        """Take over the functions of the members; the base forecast has none."""
        for i in range(1, self.member_count):
            member = self.members[i]
            self.predicts[i], self.updates[i], self.closes[i] = member.predict, member.update, member.close


def root_of(low, high):
    """1 or -1 if the working scale is the root of the distance from the lower or upper bound, 0 if it is their own.

    Spreads grow with the distance from the bound of a half line, and on an interval from zero.
    """
    if low > -INF:
        return 1.0 if high == INF or low == 0.0 else 0.0
    return -1.0 if high < INF else 0.0


def new_stream(plan, row, low, high):
    """Set the row of a stream before any round."""
    for i in range(plan.stream_size):
        row[i] = 0.0
    stream = as_stream(row)
    stream.lag = 1.0
    stream.low, stream.high = max(low, -FARTHEST), min(high, FARTHEST)
    stream.root = root_of(low, high)
    stream.target = stream.target_before = EMPTY
    for i in range(RING):
        row[STREAM_SIZE + i] = EMPTY


def new_series(plan, row, short_, long_):
    """Set the row of a series before any outcome."""
    for i in range(plan.series_size):
        row[i] = 0.0
    series = as_series(row)
    series.presumed_short = series.short_season = short_
    series.presumed_long = series.long_season = long_
    for i in range(RING):
        row[SERIES_SIZE + SEASON_COUNT + i] = EMPTY
