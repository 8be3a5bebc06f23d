"""Evidence against calibration in one stream of PITs: an e-process, and a detector of changes.

A bet is a density on [0, 1], linear between knots, of mean 1. Under calibration the product of the bets at the PITs is
a martingale (the wealth of a lane). The detector bets on the ranks of the PITs among those before, and
restarts where its product is below 1: an e-detector. A PIT may be an interval, as at an atom or between two quantiles:
the bet is then its mean there. It has four ENDS: the lower end of the interval lies between the first two, the upper
one between the last two. If these differ, as where an outcome equals a quantile, the bet is its least mean. Rounds
whose forecasts overlap go to different lanes, so that each lane has one outstanding round.
"""

import cython
import numpy as np

from orcast.kernels.records import (
    ALARM,
    CHANGE_AT,
    CHANGE_EVIDENCE,
    CHANGE_KIND,
    CHANGE_SUMS,
    CHANGES,
    CLOCK,
    COUNT,
    ENDS,
    EVIDENCE,
    HEAD,
    INSIDE,
    LANE_HEAD,
    OWN,
    PEAK,
    PEAK_END,
    PEAK_KIND,
    PEAK_SUMS,
    PREDICT,
    RANKED,
    ROUNDS,
    SCORE,
    SETTLE,
    SKIPPED,
    SQUARE,
    SUMS,
)

# The wealth of a lane stays as it is from here on: a stopped e-process.
LOCKED = 1e7
# Shorter intervals count as points: the difference of two integrals would be inexact.
NARROWEST = 1e-6
LOG3 = 1.0986122886681098
# Evidence that only serves the description is divided by the second number when it reaches the first.
LARGEST, SCALED = 1e200, 1e100
# Kinds of miscalibration in a code of an alarm; an alarm ends when the evidence has fallen to this share of its peak.
KINDS, ENDED = 8, 1e-3
TOO_LOW, TOO_HIGH, TOO_NARROW = 0.0, 1.0, 2.0
# SplitMix64; see `orcast.draws`.
ALL, STEP = 0xFFFFFFFFFFFFFFFF, 0x9E3779B97F4A7C15
FIRST_FACTOR, SECOND_FACTOR = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


class Bets:
    """Table of bets, and what else all streams of a kind share.

    A stream has a row: HEAD numbers, the starts of the description, then its lanes. Starts are the evidence of each bet
    since the last start of its group, and for each group sums since then (SUMS). A lane has LANE_HEAD numbers, the
    wealth of each bet, the starts of its detector, and a histogram of its PITs. A row may lack unused lanes.

    Parameters
    ----------
    table, areas : bets, the score that describes a size and its square at each knot; and their integrals up to it
    prior, least, kinds, groups : weight, smallest value, kind of miscalibration and group of kinds of each bet
    bins : bin of the histogram of each interval between knots
    lanes : weights of the lanes; their sum is at most 1
    spread, outside : weight of starts after the first round; share of the outcomes below the band, and above it
    signed : call forecasts too low or too high, not too narrow, if all outcomes lie beyond one end
    """

    def __init__(
        self, table, areas, prior, least, kinds, groups, bins, lanes, spread: float, outside: float, signed: bool
    ):
        self.kept = (table, areas, prior, least, kinds, groups, bins, lanes)
        self.table, self.areas = readable_of(table), readable_of(areas)
        self.prior, self.least, self.kinds = readable_of(prior), readable_of(least), readable_of(kinds)
        self.groups, self.bins, self.lanes = readable_of(groups), readable_of(bins), readable_of(lanes)
        self.count, self.knots, self.lane_count = len(prior), len(bins), len(lanes)
        self.width, self.group_count = len(prior) + 2, int(groups[len(groups) - 1]) + 1
        self.bin_count = int(bins[len(bins) - 1]) + 1
        self.starts = self.count + SUMS * self.group_count
        self.lane_size = LANE_HEAD + self.count + self.starts + self.bin_count
        self.spread, self.outside, self.signed = spread, outside, signed

    def size(self, lanes):
        """Numbers of a row with this number of lanes."""
        return HEAD + self.starts + lanes * self.lane_size

    def lanes_in(self, size):
        """Number of lanes of a row."""
        return (size - HEAD - self.starts) // self.lane_size


def start_lanes(bets, state, first):
    """Set the numbers of new lanes from one on; a stream without any is new."""
    row = numbers_of(state)
    if first == 0:
        row[EVIDENCE] = 1.0
    for i in range(first, bets.lanes_in(len(state))):
        lane = lane_of(bets, row, i)
        for k in range(bets.count):
            lane[LANE_HEAD + k] = bets.prior[k] * (1.0 - bets.spread)


def mixed(z):
    """A whole number of 64 bits, mixed."""
    z = ((z ^ (z >> 30)) * FIRST_FACTOR) & ALL
    z = ((z ^ (z >> 27)) * SECOND_FACTOR) & ALL
    return z ^ (z >> 31)


def draw_of(start, number):
    """Draw between 0 and 1, as of `orcast.draws`; `start` is that of a seed."""
    return ((mixed((start + number * STEP) & ALL) >> 12) + 0.5) / 4503599627370496.0


def lane_of(bets, row, i):
    """Numbers of a lane."""
    return cut(row, HEAD + bets.starts + i * bets.lane_size, bets.lane_size)


def detector_of(bets, lane):
    """Starts of a lane's detector; then its histogram."""
    return cut(lane, LANE_HEAD + bets.count, bets.starts + bets.bin_count)


def total(row, count):
    """Sum of numbers."""
    found = 0.0
    for k in range(count):
        found += row[k]
    return found


def cell(bets, u):
    """Interval between knots that a number of [0, 1] lies in."""
    i = whole_number(u * bets.knots)
    return min(i, bets.knots - 1)


def read_point(bets, u, out):
    """Bets and scores at a number of [0, 1]."""
    i = cell(bets, u)
    part = u * bets.knots - i
    left = cut(bets.table, i * bets.width, bets.width)
    right = cut(bets.table, (i + 1) * bets.width, bets.width)
    for k in range(bets.width):
        out[k] = left[k] + part * (right[k] - left[k])


def add_area(bets, u, factor, out):
    """Add a multiple of the integrals of the bets and scores from 0 to u."""
    i = cell(bets, u)
    part = u * bets.knots - i
    step = part / bets.knots
    left = cut(bets.table, i * bets.width, bets.width)
    right = cut(bets.table, (i + 1) * bets.width, bets.width)
    below = cut(bets.areas, i * bets.width, bets.width)
    for k in range(bets.width):
        out[k] += factor * (below[k] + (left[k] + 0.5 * part * (right[k] - left[k])) * step)


def read_bets(bets, low, high, out):
    """Bets and scores at a PIT, or their means over its interval."""
    if high - low < NARROWEST:
        read_point(bets, 0.5 * (low + high), out)
        return
    for k in range(bets.width):
        out[k] = 0.0
    add_area(bets, low, -1.0 / (high - low), out)
    add_area(bets, high, 1.0 / (high - low), out)


def take_least(bets, pit, g, other):
    """Replace the bets by their least means over the intervals that a PIT with these ends may have.

    With bets that are averaged between levels, as the ends are, the mean is a ratio of linear functions of each end, so
    its least value is at a corner.
    """
    for k in range(bets.count):
        g[k] = LARGEST
    for corner in range(4):
        low, high = pit[corner // 2], pit[2 + corner % 2]
        if low < high:
            read_bets(bets, low, high, other)
            for k in range(bets.count):
                g[k] = min(g[k], other[k])


def share_inside(bets, low, high):
    """Share of a PIT's interval in the band."""
    a, b = bets.outside, 1.0 - bets.outside
    if high > low:
        return max(min(high, b) - max(low, a), 0.0) / (high - low)
    return 1.0 if a <= low <= b else 0.0


def follow(bets, starts, g, scores, inside):
    """Multiply the evidence of each group by its bets `g`, restarted where it is below its prior; return the sum."""
    found = 0.0
    last = 0
    for i in range(bets.group_count):
        sums = cut(starts, bets.count + SUMS * i, SUMS)
        first = last
        before = added = 0.0
        while last < bets.count and bets.groups[last] == i:
            before += starts[last]
            added += bets.prior[last]
            last += 1
        if before < added:
            for k in range(first, last):
                starts[k] = bets.prior[k]
            for k in range(SUMS):
                sums[k] = 0.0
        for k in range(first, last):
            starts[k] *= g[k]
            found += starts[k]
        sums[COUNT] += 1.0
        sums[INSIDE] += inside
        sums[SCORE] += scores[0]
        sums[SQUARE] += scores[1]
    return found


def name_kind(bets, starts, sums):
    """Kind of miscalibration with the largest evidence; `sums` become those of its group."""
    best = wealth = 0.0
    found = 0
    for k in range(bets.count):
        wealth = starts[k] if k == 0 or bets.kinds[k] != bets.kinds[k - 1] else wealth + starts[k]
        if wealth > best:
            best = wealth
            found = k
    group = whole_number(bets.groups[found])
    for i in range(SUMS):
        sums[i] = starts[bets.count + SUMS * group + i]
    if bets.signed and bets.kinds[found] == TOO_NARROW:
        shift = sums[SCORE] / sums[COUNT]
        if 2.0 * shift * shift > sums[SQUARE] / sums[COUNT]:
            return TOO_LOW if shift > 0.0 else TOO_HIGH
    return bets.kinds[found]


def describe(bets, row, g, inside, now):
    """Update the time with the largest evidence since some start; it only serves the description."""
    starts = cut(row, HEAD, bets.starts)
    most = follow(bets, starts, g, cut(g, bets.count, 2), inside)
    if most > LARGEST:
        for k in range(bets.count):
            starts[k] /= SCALED
        most /= SCALED
        row[PEAK] /= SCALED
    if most >= row[PEAK]:
        row[PEAK] = most
        row[PEAK_END] = now
        row[PEAK_KIND] = name_kind(bets, starts, cut(row, PEAK_SUMS, SUMS))


def bet(bets, lane, g):
    """Update the wealth of a lane: starts at the first round, and at each later one with a small weight."""
    wealth = cut(lane, LANE_HEAD, bets.count)
    n = lane[OWN]
    lane[OWN] += 1.0
    if total(wealth, bets.count) >= LOCKED:
        return
    more = 0.0
    if n >= 1.0:
        more = bets.spread * LOG3 * (1.0 / log(n + 2.0) - 1.0 / log(n + 3.0))
    for k in range(bets.count):
        wealth[k] = (wealth[k] + more * bets.prior[k]) * g[k]


def rank(bets, lane, u, draw):
    """Randomised rank of a PIT among those before, uniform if they are exchangeable."""
    counts = cut(detector_of(bets, lane), bets.starts, bets.bin_count)
    i = cell(bets, u)
    place = whole_number(bets.bins[i])
    below = total(counts, place)
    found = (below + draw * (counts[place] + 1.0)) / (lane[RANKED] + 1.0)
    counts[place] += 1.0
    lane[RANKED] += 1.0
    return found


def lane_evidence(bets, lane, pending):
    """Wealth of a lane; its outstanding round counts as lost as far as it can be."""
    wealth = cut(lane, LANE_HEAD, bets.count)
    found = bets.spread * LOG3 / log(lane[OWN] + 2.0 if lane[OWN] >= 1.0 else 3.0)
    if total(wealth, bets.count) >= LOCKED:
        pending = False
    for k in range(bets.count):
        found += wealth[k] * (bets.least[k] if pending else 1.0)
    return found


def new_evidence(bets, pending):
    """Wealth of a lane without rounds."""
    found = bets.spread
    for k in range(bets.count):
        found += bets.prior[k] * (1.0 - bets.spread) * (bets.least[k] if pending else 1.0)
    return found


def lane_change(bets, lane, pending):
    """Evidence of a lane's detector."""
    starts = detector_of(bets, lane)
    found = 0.0
    for k in range(bets.count):
        found += starts[k] * (bets.least[k] if pending else 1.0)
    return found


def free_lane(bets, row, lanes, issued):
    """First lane whose last outcome came before a round was issued; -1 if there is none."""
    for i in range(lanes):
        if lane_of(bets, row, i)[CLOCK] <= issued:
            return i
    return -1


def close_change(bets, row, lanes, now):
    """Record a change, and begin to look for the next one."""
    most = -1.0
    best = detector_of(bets, lane_of(bets, row, 0))
    for i in range(lanes):
        starts = detector_of(bets, lane_of(bets, row, i))
        if total(starts, bets.count) > most:
            most = total(starts, bets.count)
            best = starts
    row[CHANGES] += 1.0
    row[CHANGE_AT] = now
    row[CHANGE_KIND] = name_kind(bets, best, cut(row, CHANGE_SUMS, SUMS))
    for i in range(lanes):
        lane = lane_of(bets, row, i)
        lane[RANKED] = 0.0
        starts = detector_of(bets, lane)
        for k in range(bets.starts + bets.bin_count):
            starts[k] = 0.0


def update_stream(bets, row, lanes, pit, start, issued, clock, ever, change, scratch):
    """Update a row with a PIT of round `issued`, known when `clock` were issued; its draws begin at `start`."""
    row[ROUNDS] += 1.0
    now = row[ROUNDS]
    low, high = 0.5 * (pit[0] + pit[1]), 0.5 * (pit[2] + pit[3])
    g, inside = scratch, share_inside(bets, low, high)
    ranked = cut(scratch, bets.width, bets.width)
    read_bets(bets, low, high, g)
    if pit[0] < pit[1] or pit[2] < pit[3]:
        take_least(bets, pit, g, ranked)
    describe(bets, row, g, inside, now)
    used = free_lane(bets, row, lanes, issued)
    if used < 0:
        row[SKIPPED] += 1.0
        return
    lane = lane_of(bets, row, used)
    outstanding = clock > issued + 1.0
    bet(bets, lane, g)
    number = whole_number(now - 1.0)
    u = low + draw_of(start, 2 * number) * (high - low)
    read_point(bets, rank(bets, lane, u, draw_of(start, 2 * number + 1)), ranked)
    follow(bets, detector_of(bets, lane), ranked, cut(g, bets.count, 2), inside)
    lane[CLOCK] = clock
    evidence = changed = 0.0
    for i in range(lanes):
        pending = outstanding and i != used
        lane = lane_of(bets, row, i)
        evidence += bets.lanes[i] * lane_evidence(bets, lane, pending)
        changed += lane_change(bets, lane, pending)
    if lanes < bets.lane_count:
        rest = bets.lane_count - lanes
        evidence += new_evidence(bets, outstanding) * total(cut(bets.lanes, lanes, rest), rest)
    row[EVIDENCE] = evidence
    row[CHANGE_EVIDENCE] = changed
    if evidence >= ever and row[ALARM] == 0.0:
        row[ALARM] = now
    if changed >= change:
        close_change(bets, row, lanes, now)


def code_of(bets, row):
    """Alarm that stands: 0 for none, 1 + kind of miscalibration, and KINDS more for that of a change."""
    if row[ALARM] > 0.0 and total(cut(row, HEAD, bets.count), bets.count) >= ENDED * row[PEAK]:
        return 1.0 + row[PEAK_KIND]
    return 1.0 + KINDS + row[CHANGE_KIND] if row[CHANGES] > 0.0 else 0.0


def put_round(watcher, pit, issued, clock):
    """Update with a PIT, given by its ends."""
    ever, change, scratch = watcher.ever, watcher.change, watcher.scratch_row
    row, lanes, start = watcher.row, watcher.lanes, watcher.start
    update_stream(watcher.bets, row, lanes, pit, start, issued, clock, ever, change, scratch)


class Watcher:
    """One stream, updated in place; `state` is its row, `delay` the rounds issued from a forecast to its outcome.

    Its random draws begin at `start` (`orcast.draws.start_of`).  A row that has not all lanes grows when it needs one.
    """

    def __init__(self, bets: Bets, state, ever: float, change: float, delay: float, start: int):
        self.bets, self.ever, self.change, self.delay, self.start = bets, ever, change, delay, start
        self.scratch = np.zeros(2 * bets.width + ENDS)
        self.scratch_row = numbers_of(self.scratch)
        self.take(state)

    def take(self, state):
        """Go on with another row."""
        self.state, self.row, self.lanes = state, numbers_of(state), self.bets.lanes_in(len(state))

    def step(self, u: float):
        """Update with a PIT that is a number."""
        n, pit = self.row[ROUNDS], cut(self.scratch_row, 2 * self.bets.width, ENDS)
        pit[0] = pit[1] = pit[2] = pit[3] = u
        self.put(pit, n, n + self.delay)

    def put(self, pit, issued: float, clock: float):
        """Update with a PIT of round `issued`, known when `clock` were issued."""
        bets, lanes = self.bets, self.lanes
        if lanes < bets.lane_count and free_lane(bets, self.row, lanes, issued) < 0:
            self.take(np.concatenate((self.state, np.zeros(bets.lane_size))))
            start_lanes(bets, self.state, lanes)
        put_round(self, pit, issued, clock)

    def run(self, pits, trace):
        """Update with the PITs of rows; keep both kinds of evidence after each in the rows of `trace`."""
        ends, kept, number = readable_of(pits), numbers_of(trace), len(trace) // 2
        with cython.nogil:
            for i in range(number):
                put_round(self, cut(ends, ENDS * i, ENDS), self.row[ROUNDS], self.row[ROUNDS] + self.delay)
                kept[2 * i] = self.row[EVIDENCE]
                kept[2 * i + 1] = self.row[CHANGE_EVIDENCE]

    def follow_events(self, events, pits, issued, count: float, codes):
        """Run events (kind, entry), flat; write the alarm that stands at each forecast into `codes`.

        `issued` are the rounds that were issued before each entry (those of new ones are filled in), `count` all so
        far.  Outcomes whose PIT is nan are left out.
        """
        kinds, number = whole_of(events), len(events) // 2
        ends, since, found = readable_of(pits), numbers_of(issued), numbers_of(codes)
        for i in range(number):
            at = kinds[2 * i + 1]
            if kinds[2 * i] == PREDICT:
                found[at] = code_of(self.bets, self.row)
                since[at] = count
                count += 1.0
            elif kinds[2 * i] == SETTLE and ends[ENDS * at] == ends[ENDS * at]:
                self.put(cut(ends, ENDS * at, ENDS), since[at], count)


def watch(watchers, pits, issued, clock):
    """Update streams with the PITs of round `issued`, known when `clock` were issued, or of that and later rounds.

    A round has the ENDS of a PIT for each stream; nan leaves the stream out.
    """
    count, numbers = len(watchers), readable_of(pits)
    rounds = len(pits) // (ENDS * count)
    for k in range(count):
        watcher = watchers[k]
        for i in range(rounds):
            pit = cut(numbers, ENDS * (i * count + k), ENDS)
            if pit[0] == pit[0]:
                watcher.put(pit, issued + i, clock + i)
