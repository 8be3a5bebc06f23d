"""The learners on ordered spaces, written plainly from their definitions: slow, and without a line of the kernels.

Numbers stand here as numbers: a definition that took them from the code could not tell that they had changed.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import norm, truncnorm

import orcast as oc

Array = NDArray[np.float64]


def cut_normal(a: float, b: float) -> tuple[float, float]:
    """Mean and variance of a standard normal given that it lies in [a, b]."""
    mean, variance = truncnorm.stats(a, b, moments="mv")
    return float(mean), float(variance)


def horizon(pending: float) -> int:
    """Outcomes are fresh, late or stale."""
    return 0 if pending < 1 else 1 if pending < 16 else 2


class Quantiles:
    """An expert's quantiles as a function of the normal score, linear between the levels and beyond."""

    def __init__(self, q: Array, space: Any, smallest: float) -> None:
        self.q, self.z, self.low, self.high = q, ndtri(space.levels), space.low, space.high
        middle = (q.size - 1) // 2
        low = (q[middle] - q[0]) / (self.z[middle] - self.z[0])
        high = (q[-1] - q[middle]) / (self.z[-1] - self.z[middle])
        least = max((low + high) / 8, smallest)
        self.slopes = max(low, least), max(high, least)

    def at(self, scores: Any) -> Array:
        s = np.asarray(scores, dtype=np.float64)
        below = self.q[0] + (s - self.z[0]) * self.slopes[0]
        above = self.q[-1] + (s - self.z[-1]) * self.slopes[1]
        value: Array = np.where(s < self.z[0], below, np.where(s > self.z[-1], above, np.interp(s, self.z, self.q)))
        return value

    def corrected(self, location: float, spread: float) -> Array:
        value: Array = np.clip(self.at(location + spread * self.z), self.low, self.high)
        return value

    def score(self, y: float) -> tuple[float, float]:
        """Mean and variance of the normal score of a value, which on an atom is only known up to the atom's levels."""
        equal = np.flatnonzero(self.q == y)
        if equal.size > 1:
            first, last = equal[0], equal[-1]
            return cut_normal(self.z[first] if first > 0 else -8.0, self.z[last] if last < self.q.size - 1 else 8.0)
        if y < self.q[0]:
            return self.z[0] + (y - self.q[0]) / self.slopes[0], 0.0
        if y > self.q[-1]:
            return self.z[-1] + (y - self.q[-1]) / self.slopes[1], 0.0
        i = int(np.flatnonzero(self.q <= y)[-1])
        if self.q[i] == y:
            return float(self.z[i]), 0.0
        share = (y - self.q[i]) / (self.q[i + 1] - self.q[i])
        return float(self.z[i] + share * (self.z[i + 1] - self.z[i])), 0.0

    def outcome_score(self, y: float) -> tuple[float, float]:
        """At a bound an outcome stands for all that the expert puts beyond."""
        score, variance = self.score(y)
        equal = np.flatnonzero(self.q == y)
        if y <= self.low and score > -6:
            return cut_normal(-8.0, self.z[equal[-1]] if variance else score)
        if y >= self.high and score < 6:
            return cut_normal(self.z[equal[0]] if variance else score, 8.0)
        return score, variance


def pinball(q: Array, y: float, levels: Array) -> float:
    return float(np.mean(np.where(y > q, levels * (y - q), (1 - levels) * (q - y))))


class Settled(NamedTuple):
    """A round and its outcome, and the memory before and after; `rules` are the options of the engine."""

    before: Any
    record: Any
    y: float
    after: Any
    space: Any
    rules: Any
    signal: Array  # what was heard of a pool when the outcome came


class Taught:
    """What a round tells the learners."""

    def __init__(self, it: Settled) -> None:
        self.it = it
        info, cells = it.record.info, it.record.cells
        n, self.pending, self.low, self.high = int(info[0]), float(info[2]), float(info[5]), float(info[6])
        self.left, self.right, self.prior, self.expert, self.played = cells[:5, :n]
        self.learnt, self.members = cells[6, :n], cells[7:, :n]
        self.context, self.regular, self.smallest = float(info[1]), bool(info[7]), float(info[10])
        self.clipped = min(max(it.y, self.low), self.high)
        self.weight = (1 + self.pending) ** -0.5
        self.kept = 1 - 0.002 * self.weight
        self.loss = self.crps(self.expert)
        before = it.before.statistics
        self.loss_sum, self.loss_count = 0.998 * before[11] + self.loss, 0.998 * before[12] + 1
        self.unit = max(self.loss_sum / self.loss_count, 1e-12 * (self.high - self.low))
        self.horizon = horizon(self.pending)

    def forecast(self, mass: Array) -> oc.Forecast:
        return oc.Forecast(self.left, self.right, mass / mass.sum())

    def crps(self, mass: Array) -> float:
        return float(self.forecast(mass).crps(self.clipped))

    @property
    def cell(self) -> int:
        """An atom at the outcome, or the cell that ends there or later."""
        atom = np.flatnonzero((self.left == self.clipped) & (self.right == self.clipped))
        return int(atom[0] if atom.size else np.flatnonzero(self.right >= self.clipped)[0])


# --- evidence


def standard_errors(evidence: Array) -> float:
    """The gain over the root of 1 + the squares of the sums over blocks, the last of which may not be over."""
    gain, squares, block, _ = evidence
    return float(gain / math.sqrt(1 + squares + block**2))


def share_of(evidence: Array, hint: float, odds: float) -> float:
    """The share of what was learnt, at these odds before any evidence."""
    return 1 / (1 + math.exp(min(-1.25 * (standard_errors(evidence) + hint), 700.0)) / odds)


def prior_odds(pending: float) -> float:
    """Odds before any evidence; less where errors overlap."""
    return 0.3 / math.sqrt(1 + min(pending, 8))


def with_gain(evidence: Array, more: float, pending: float) -> Array:
    """One more gain; a block has 1 + pending outcomes."""
    gain, squares, block, count = evidence
    gain, squares, block, count = 0.998 * gain + more, 0.998 * squares, block + more, count + 1
    if count >= 1 + pending:
        return np.array([gain, squares + block**2, 0.0, 0.0])
    return np.array([gain, squares, block, count])


def gradient(q: Array, y: float, levels: Array) -> Array:
    """Of the pinball loss; at a tie neither side counts."""
    return np.select([y < q, y > q], [1 - levels, -levels], 0.0)


def ledger_gradient(q: Array, y: float, levels: Array) -> Array:
    """The same, but on an atom the share of it below each of its levels, whose mean is zero if q is calibrated."""
    found, tie = gradient(q, y, levels), np.flatnonzero(q == y)
    if tie.size:
        edges = np.concatenate(([0.0], (levels[1:] + levels[:-1]) / 2, [1.0]))
        low, high = edges[tie[0]], edges[tie[-1] + 1]
        found[tie] = (levels[tie] - low) / (high - low) - levels[tie]
    return found


def with_gradient(ledger: Array, g: Array, pending: float) -> Array:
    """Sums of gradients; the last column has the squares of the sums over blocks, and the outcomes of this one."""
    sums, squares = 0.998 * ledger[0, :-1] + g, 0.998**2 * ledger[0, -1]
    block, count = ledger[1, :-1] + g, ledger[1, -1] + 1
    if count >= 1 + pending:
        return np.array([[*sums, squares + block @ block], [0.0] * (g.size + 1)])
    return np.array([[*sums, squares], [*block, count]])


def beyond_chance(ledger: Array) -> float:
    """The square of the sums over that of the blocks: about 1 for a calibrated forecast."""
    sums, block = ledger[0, :-1], ledger[1, :-1]
    return float(sums @ sums / max(ledger[0, -1] + block @ block, 1e-300))


def expert_beyond_chance(ledger: Array, rules: Any) -> float:
    """The same, and to two fifths that of the spread alone."""
    return 0.6 * beyond_chance(ledger) + 0.4 * spread_errors(ledger, rules) ** 2


def spread_excess(ledger: Array, rules: Any) -> tuple[float, float, float]:
    """Sum of squared scores cut to the outer levels, less their mean; its variance an outcome; outcomes of chance."""
    sums, block, levels = ledger[0, :-1], ledger[1, :-1], rules.grid
    width = np.diff(rules.scores, prepend=rules.scores[0]) + np.diff(rules.scores, append=rules.scores[-1])
    weights = rules.scores * width
    below = np.minimum.outer(levels, levels) - np.outer(levels, levels)
    chance = (ledger[0, -1] + block @ block) / (levels @ (1 - levels))
    return float(-weights @ sums), float(weights @ below @ weights), float(chance)


def spread_errors(ledger: Array, rules: Any) -> float:
    """How much wider outcomes lie, in standard errors."""
    total, variance, chance = spread_excess(ledger, rules)
    return total / math.sqrt(max(variance * chance, 1e-300))


def cut_square(b: float, most: float) -> float:
    """The mean of min(b |z|, most)^2 for a standard normal z."""
    x = most / b
    inner = math.erf(x / math.sqrt(2)) - 2 * x * math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return float(b**2 * inner + most**2 * math.erfc(x / math.sqrt(2)))


def spread_with(excess: float, most: float) -> float:
    """The spread whose cut square is larger by so much, by bisection."""
    low, high = 0.4, 3.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if cut_square(middle, most) < cut_square(1.0, most) + excess else (low, middle)
    return low


def stretch(memory: Any, rules: Any, signal: Array) -> float:
    """The spread that the expert's outcomes show, beside what is usual in the pool."""
    count, most = memory.tracker_unit[1], rules.scores[-1]
    usual = float(signal[-1]) if signal.size else 0.0
    if count == 0:
        return spread_with(usual, most)
    total, variance, chance = spread_excess(memory.expert_ledger, rules)
    overlap = max(chance / count, 1.0)
    own = total - usual * count
    square = own**2 / (variance * spread_with(usual, most) ** 4 * count * overlap)
    odds = 0.3 * math.exp(min(square / 2, 600.0)) / math.sqrt(1 + count / overlap)
    return spread_with(usual + odds / (1 + odds) * own / (count + 3 * overlap), most)


def hint(memory: Any, rules: Any, signal: Array, pending: float) -> float:
    """What speaks for what was learnt beside its gain: a fault of the expert; in a pool mostly what the pool says."""
    own = expert_beyond_chance(memory.expert_ledger, rules)
    if not signal.size:
        return min(max(own - 2, 0.0), 3.0)
    _, gain, beyond = signal[:3]
    found = min(max(0.1 * own + 0.9 * beyond - 1, 0.0), 3.0)
    return float(found + (1.5 * gain if gain < 0 else gain / (1 + memory.statistics[5] / (1 + min(pending, 8)) / 10)))


# --- statistics and experts


def statistics(it: Settled) -> dict[int, float]:
    """Losses of the expert, and the level of the outcomes; by their place."""
    t, before = Taught(it), it.before.statistics
    # the expert's own expectation of its CRPS, the integral of F (1 - F), by Simpson's rule on each cell
    above = np.cumsum(t.expert)
    F = np.array([above - t.expert, above - 0.5 * t.expert, above])
    expected = (np.array([1, 4, 1]) / 6 @ (F * (1 - F))) @ (t.right - t.left)
    usual = max(before[17], expected, 1e-3 * (it.record.raw[-1] - it.record.raw[0]), 1e-6 * abs(t.clipped))
    step = max(0.002, 1 / (before[5] + 2))
    rounds = it.after.account[1]
    found = {
        11: t.loss_sum,
        12: t.loss_count,
        13: before[13] + t.weight,
        14: it.y - t.forecast(t.played).quantile(0.5),
        17: before[17] + step * (min(t.loss, 4 * usual) - before[17]),
    }
    if rounds <= 1:
        return {**found, 15: it.y, 16: max((0.1 * it.y) ** 2, 1e-12)}
    step = max(0.002, 1 / (rounds + 1))
    most = 6 * math.sqrt(before[16])
    change = min(max(it.y - before[15], -most), most)
    return {**found, 15: before[15] + step * change, 16: (1 - step) * (before[16] + step * change**2)}


def log_weights(expert_loss: Array) -> Array:
    """By how much each expert's log weight at each level is below the pool's: what it lost more, by its variance."""
    behind, squares = expert_loss[..., 0], expert_loss[..., 1]
    return np.where(squares > 0, 2 * behind / np.sqrt(np.where(squares > 0, squares, 1)), 0.0)


def smoothed(values: Array) -> Array:
    """Over a twelfth of the levels to either side, with weights that fall linearly."""
    at = np.arange(values.shape[-1])
    weights = np.maximum(at.size // 12 + 1 - np.abs(at[:, None] - at), 0.0)
    return values @ (weights / weights.sum(axis=0))


def expert_loss(it: Settled) -> Array:
    """Pinball losses of the experts that are there, more than the pool's, and their squares; none falls far behind."""
    t, found = Taught(it), it.before.expert_loss.copy()
    levels, there = it.space.levels, ~np.isnan(it.record.experts[1:, 0])
    scores = log_weights(found[there])
    most = (scores.min(axis=0) + 4) / 2 * np.sqrt(found[there, :, 1])
    rows = np.vstack([it.record.raw, it.record.experts[1:][there]])
    losses = np.where(t.clipped > rows, levels * (t.clipped - rows), (1 - levels) * (rows - t.clipped))
    more = (losses[1:] - losses[0]) / t.unit
    found[there, :, 0] = t.kept * np.minimum(found[there, :, 0], most) + t.weight * more
    found[there, :, 1] = t.kept * found[there, :, 1] + t.weight * np.minimum(np.abs(more), 0.3) ** 2
    return found


def rivals(it: Settled) -> Array:
    """Discounted losses of each expert that is there, and how much what was played lost more."""
    t, found = Taught(it), it.before.rivals.copy()
    for e in range(len(found)):
        if len(found) > 1 and np.isnan(it.record.experts[e + 1, 0]):
            continue
        mass = it.record.rivals[e, : t.prior.size]
        crps = t.crps(mass) if len(found) > 1 else t.loss
        square = (t.clipped - t.forecast(mass).mean()) ** 2
        found[e, :3] = 0.998 * found[e, :3] + [crps, square / (t.high - t.low) ** 2, 1]
        found[e, 3:] += [
            t.crps(t.played) - t.crps(mass),
            (t.clipped - t.forecast(t.played).mean()) ** 2 - square,
            1,
        ]
    return found


# --- members


def cosine_means(below: Array, above: Array) -> Array:
    """Means of sqrt(2) cos(pi j u), j = 1, ..., 8, over shares of the levels, by quadrature; a row a share."""
    u, w = np.polynomial.legendre.leggauss(40)
    levels = below[:, None] + (above - below)[:, None] * 0.5 * (u + 1)
    j = np.arange(1, 9)
    value: Array = np.einsum("kuj,u->kj", math.sqrt(2) * np.cos(np.pi * levels[:, :, None] * j), 0.5 * w)
    return value


def basis(t: Taught) -> Array:
    """Where no cells were merged or cut, those of the nominal masses: 1% in each tail, falling by 0.6 a cell."""
    masses = t.prior
    if t.regular:
        side = t.it.space.tail_cells + 1
        tail = 0.6 ** np.arange(side)
        tail *= 0.01 / tail.sum()
        inner = t.prior.size - 2 * side
        masses = np.concatenate((tail[::-1], np.full(inner, 0.98 / inner), tail))
    edges = np.concatenate(([0.0], np.cumsum(masses)))
    return cosine_means(edges[:-1], edges[1:])


def members(t: Taught) -> Array:
    """The masses of each member: the prior times exp(theta phi), with or without the context of the last PIT."""
    found, phi = [], basis(t)
    for (_, context, _), theta in zip(t.it.rules.members, t.it.before.shape, strict=True):
        tilt = phi @ (theta[0] + (t.context * theta[1] if context else 0.0))
        mass = t.prior * np.exp(np.clip(tilt, -6, 6))
        found.append(mass / mass.sum())
    return np.array(found)


def shape(it: Settled) -> Array:
    """A step each on the log score: (phi at the outcome minus its mean), over the context's variance of 1/3."""
    t, found = Taught(it), it.before.shape.copy()
    phi = basis(t)
    observations = it.before.statistics[13] + t.weight
    for m, (least, context, start) in enumerate(it.rules.members):
        step = t.weight * max(least, 1 / (observations + start))
        gradient = phi[t.cell] - t.members[m] @ phi
        found[m, 0] += step * gradient
        if context:
            found[m, 1] += step * t.context * gradient / (1 / 3)
    return found


def member_loss(it: Settled) -> Array:
    """Discounted CRPS of the members."""
    t, found = Taught(it), it.before.member_loss.copy()
    losses = np.array([t.crps(mass) for mass in t.members])
    found[t.horizon] = t.kept * found[t.horizon] + t.weight * losses / t.unit
    return found


def member_evidence(it: Settled) -> Array:
    """What the corrected expert lost more than the mix of the members."""
    t, found = Taught(it), it.before.member_evidence.copy()
    gain = (t.crps(t.prior) - t.crps(t.learnt)) / t.unit
    found[t.horizon] = with_gain(found[t.horizon], gain, t.pending)
    return found


def mixed(t: Taught) -> tuple[Array, Array]:
    """The mix of the members by their losses, and the prior of the last layer, between it and the corrected expert."""
    loss = t.it.before.member_loss[t.horizon]
    weights = np.exp(-2 * (loss - loss.min()))
    learnt = weights @ t.members / weights.sum()
    share = min(share_of(t.it.before.member_evidence[t.horizon], 0.0, prior_odds(t.pending)), 1 - 1e-4)
    return learnt, share * learnt + (1 - share) * t.prior


def last_pit(it: Settled) -> float:
    t = Taught(it)
    k = t.cell
    width = t.right[k] - t.left[k]
    place = (t.clipped - t.left[k]) / width if width > 0 else 0.5
    return float(t.prior[:k].sum() + place * t.prior[k])


# --- groups


def by_group(it: Settled) -> tuple[Array, Array]:
    """Mean and variance of the outcome's score in each group of the round, and the two discounted losses."""
    t = Taught(it)
    expert = Quantiles(it.record.raw, it.space, t.smallest)
    score, variance = expert.score(it.y)
    score = min(max(score, -8.0), 8.0)
    found, loss = it.before.by_group.copy(), it.before.group_loss.copy()
    context = np.abs(it.record.context[it.rules.group_at : it.rules.group_at + it.rules.group_count])
    for g in np.flatnonzero(context):
        c = context[g] * t.weight
        rounds, mean, spread = found[g]
        rate = c * max(0.002, 1 / (rounds + c + 10))
        found[g] = rounds + c, mean + rate * (score - mean), spread + rate * ((score - mean) ** 2 + variance - spread)
    location, stretch = it.record.info[8], it.record.info[9]
    for i, q in enumerate((it.record.raw, expert.corrected(location, stretch))):
        loss[i] = t.kept * loss[i] + t.weight * pinball(q, t.clipped, it.space.levels) / (0.5 * t.unit)
    return found, loss


def wanted_correction(groups: Array, context: Array) -> tuple[float, float]:
    """Location and spread that the groups of a round ask for: their mean."""
    _, mean, variance = (np.abs(context) @ groups) / np.abs(context).sum()
    return float(mean), float(np.clip(math.sqrt(variance), 0.1, 10.0))


# --- the tracker


def least_squares(theta: Array, P: Array, x: Array, error: float, weight: float, cap: float) -> tuple[Array, Array]:
    """Least squares with forgetting, in terms of the information matrix."""
    kept = 1 - 0.002 * weight
    new = np.linalg.inv(kept * np.linalg.inv(P) + weight * np.outer(x, x))
    theta = theta + weight * error * (new @ x)
    return theta, new * (kept if np.diag(new).max() > cap else 1.0)


def seasons(memory: Any, surprise: float) -> dict[str, Array]:
    """The surprises with one more, in a ring of 368; their autocorrelation; and the seasons: its two highest peaks."""
    ring, was = memory.surprises.copy(), memory.seasons
    place, count = int(was[2]), int(was[3])
    past = np.roll(ring, -place)[::-1]  # the last one first
    products = np.zeros(ring.size)
    products[0] = surprise**2
    known = min(count, ring.size - 1)
    products[1 : known + 1] = surprise * past[:known]
    kept = np.ones(ring.size)
    kept[: known + 1] = 0.999
    c = kept * memory.autocorrelation + products
    ring[place] = surprise
    # they are looked for after every eighth outcome
    found = peaks(c, count + 1, was[:2].astype(int)) if (count + 1) % 8 == 0 else was[:2].tolist()
    return {
        "surprises": ring,
        "autocorrelation": c,
        "seasons": np.array([*found, (place + 1) % ring.size, count + 1]),
    }


def peaks(c: Array, count: float, was: Array) -> list[int]:
    """Lags of the two highest peaks of more than 4 standard errors; what was found stays unless a fifth lower.

    A presumed lag, which has a minus, is a peak of 4.04 if it has no higher one.  Until 2.5 of the longest presumed
    season are over, other multiples of presumed ones do not count.
    """
    heights = {}
    presumed = [-lag for lag in was if lag < 0]
    for lag in range(4, c.size - 1):
        if c[lag] >= max(c[lag - 1], c[lag + 1]) and count >= 2.5 * lag:
            pairs = max(count - lag if count < 1000 else 1000.0, 1.0)
            heights[lag] = c[lag] / max(c[0], 1e-300) * math.sqrt(pairs) * (1.2 if lag in abs(was) else 1.0)
        if lag in presumed:
            heights[lag] = max(heights.get(lag, 0.0), 4.04)
        elif count < 2.5 * max(presumed, default=0) and any(lag % of == 0 for of in presumed):
            heights.pop(lag, None)
    found = sorted((lag for lag in heights if heights[lag] > 4), key=lambda lag: -heights[lag])[:2]
    # who stays keeps its place
    places = [int(lag) if abs(lag) in found else 0 for lag in was]
    new = [lag for lag in found if lag not in np.abs(places)]
    return [place or (new.pop(0) if new else 0) for place in places]


def season_ago(memory: Any, which: int, pending: float) -> float:
    """The surprise a whole number of seasons before the outcome that is forecast, as soon as it is known."""
    lag, place, count = abs(int(memory.seasons[which])), int(memory.seasons[2]), int(memory.seasons[3])
    if not lag:
        return 0.0
    ago = 1 + (lag - 1 - int(pending)) % lag
    known = min(count, memory.surprises.size)
    return float(memory.surprises[(place - ago) % memory.surprises.size]) if ago <= known else 0.0


def trusted(rules: Any, c: int, usual_move: float) -> Array:
    """What each location feature counts for a learner: where the expert moved far, some do not trust the last ones."""
    return np.array([1.0, *[usual_move if rules.learners[c, 2] else 1.0] * 6, 1.0, 1.0])


def tracker(it: Settled) -> dict[str, Array]:
    """All that the learners of location and spread learn."""
    t = Taught(it)
    old, record, learners = it.before.statistics, it.record.record, it.record.learners
    found = {name: getattr(it.before, name).copy() for name in ("location", "location_cov", "spread", "fit", "fit_cov")}
    expert = Quantiles(it.record.experts[0], it.space, t.smallest)
    score, variance = expert.outcome_score(it.y)
    size, most = old[0], 6.0 if np.isfinite(it.space.high - it.space.low) or old[5] < 100 else 3.0
    plain = record[:9] * np.array([1.0, *[record[12] / size] * 8])
    target = min(max(score / size, -most), most)
    # the first learner knows no season: what it does not foresee is a surprise
    x = (plain * trusted(it.rules, 0, record[14]))[:5]
    found |= seasons(it.before, size * (target - found["location"][0, :5] @ x))
    for which in np.flatnonzero(found["seasons"][:2] != it.before.seasons[:2]):
        found["location"][:, 7 + which] = 0.0
        found["location_cov"][:, 7 + which, :] = found["location_cov"][:, :, 7 + which] = 0.0
        found["location_cov"][:, 7 + which, 7 + which] = 0.05
    for c, (count, memory, _) in enumerate(it.rules.learners):
        use = slice(int(count))
        x = (plain * trusted(it.rules, c, record[14]))[use]
        theta, P = found["location"][c], found["location_cov"][c]
        error = target - theta[use] @ x
        theta[use], P[use, use] = least_squares(theta[use], P[use, use], x, error, t.weight, 0.5)
        deviation = math.sqrt(error**2 + variance / size**2) / math.sqrt(2 / math.pi)
        surprise = min(deviation * size / learners[c, 1] - 1, 4.0)
        found["fit"][c], found["fit_cov"][c] = least_squares(
            found["fit"][c], found["fit_cov"][c], learners[c, 2:], surprise, t.weight, 0.1
        )
        slow, fast = found["spread"][c]
        counted = deviation if most == 6 else min(deviation, most * slow)
        # the expert's own spread counts as twenty outcomes
        rate = t.weight * max(1 - memory, 1 / (t.weight * old[5] + 20))
        found["spread"][c] = (
            max(slow + rate * (counted - slow), 1e-3),
            fast + 0.1 * t.weight * (min(deviation, 6 * slow) - fast),
        )
    square = min(score**2 + variance, (most * size) ** 2)
    new = max(math.sqrt(size**2 + 0.01 * t.weight * (square - size**2)), 1e-3)
    found["location"][:, 0] *= size / new
    found["spread"] *= size / new
    found["statistics"] = features(it, new)
    return found


def features(it: Settled, size: float) -> Array:
    """What the features of the next rounds are made of, in the places of the statistics; nan in those of others."""
    old, record = it.before.statistics, it.record.record
    median = record[13]
    rate = max(0.002, 1 / (old[5] + 1))
    step = median - old[6]
    moved = abs(median - old[20]) if old[5] else 0.0
    if old[5] > 10 and old[21] > 0:
        moved = min(moved, 3 * old[21])
    found = np.full(old.size, np.nan)
    found[:10] = (
        size,
        it.y - median,
        old[1],
        old[2],
        it.y,
        old[5] + 1,
        old[6] + rate * step,
        (1 - rate) * (old[7] + rate * step**2),
        old[8] + rate * (math.log(record[9]) - old[8]),
        old[9] + rate * (math.log(1 + abs(record[4])) - old[9]),
    )
    found[18] = max(0.97 * old[18], abs(it.y - median))
    found[20:22] = median, old[21] + rate * (moved - old[21])
    # the outcomes before the last; the first one also stands for those before it
    found[22:] = (old[4], old[22]) if old[5] else (it.y, it.y)
    return found


# --- quantile trackers and level offsets


def with_offsets(q: Array, offsets: Array, space: Any) -> Array:
    """Quantiles with their offsets, sorted and within the bounds."""
    found: Array = np.clip(np.sort(q + offsets), space.low, space.high)
    return found


def offsets_of(memory: Any, rules: Any, signal: Array, expected_loss: float) -> Array:
    """The offsets of the trackers; before the first outcome those of the pool, which are in units of a loss."""
    found: Array = memory.offsets.copy()
    if signal.size and memory.tracker_unit[1] == 0:
        means = signal[3:-1].reshape(2, rules.pooled, -1)[1]
        found[: rules.pooled] = expected_loss * means
    return found


def quantile_trackers(it: Settled) -> dict[str, Array]:
    """A step of each tracker that is awake, in a pool with a share of what all saw since the last one."""
    q, levels, signal = it.record.experts[0], it.space.levels, it.signal
    # a normal's expected CRPS is its standard deviation over the root of pi
    offsets = offsets_of(it.before, it.rules, signal, it.record.record[9] / math.sqrt(math.pi))
    unit = 0.998 * it.before.tracker_unit + np.array([2 * pinball(q, it.y, levels), 1.0])
    usual, seen = unit[0] / unit[1], it.before.pool_seen.copy()
    for m, (step, leak, share) in enumerate(it.rules.trackers):
        if share and not signal.size:
            continue
        g = gradient(np.clip(q + offsets[m], it.space.low, it.space.high), it.y, levels)
        if share and signal[0] > seen[0]:
            place = slice(3 + m * levels.size, 3 + (m + 1) * levels.size)
            g = (1 - share) * g + share * (signal[place] - seen[place]) / (signal[0] - seen[0])
        offsets[m] = np.clip((1 - leak) * offsets[m] - 3 * step * usual * g, -50 * usual, 50 * usual)
    return {"offsets": offsets, "tracker_unit": unit, "pool_seen": signal[: seen.size] if signal.size else seen}


def track_loss(it: Settled) -> Array:
    """Discounted pinball losses of the learners, then of the quantile trackers."""
    t, found, levels = Taught(it), it.before.track_loss.copy(), it.space.levels
    expert = Quantiles(it.record.experts[0], it.space, t.smallest)
    rows = [expert.corrected(own[0], own[1]) for own in it.record.learners]
    rows += list(it.record.tracked[: len(it.rules.trackers)])
    losses = np.array([pinball(q, t.clipped, levels) for q in rows])
    found[t.horizon] = t.kept * found[t.horizon] + t.weight * losses / (0.5 * t.unit)
    return found


def learnt_levels(it: Settled) -> Array:
    """A step of each level's offset, in units of the spread; as large as if the outcome were normal."""
    t, q, found = Taught(it), it.record.tracked[-2], it.before.level_offsets.copy()
    spread, z = spread_of(q, it.space), ndtri(it.space.levels)
    if spread == 0:
        return found
    late = (1 + min(t.pending, 8)) ** (0.75 if t.pending < 16 else 1)
    rate = max(0.008, 0.4 / (it.before.statistics[5] + 20)) / late
    g = gradient(np.clip(q + spread * found, it.space.low, it.space.high), it.y, it.space.levels)
    found -= rate * g / norm.pdf(z)
    return np.clip(found, -1 - np.abs(z), 1 + np.abs(z))


def spread_of(q: Array, space: Any) -> float:
    """The mean slope of quantiles in normal scores, a sixth of the levels left out at either end."""
    side, z = (q.size - 1) // 6, ndtri(space.levels)
    return float((q[-1 - side] - q[side]) / (z[-1 - side] - z[side]))


def evidence(it: Settled) -> dict[str, Array]:
    """What was gained by the blend on the stretched expert, and by the level offsets on what there was without them."""
    t, levels = Taught(it), it.space.levels
    learnt, base, settled = it.record.tracked[-3:]
    q = it.record.experts[0]
    found = {name: getattr(it.before, name).copy() for name in ("track_evidence", "level_evidence")}
    pairs = {
        "track_evidence": (
            Quantiles(q, it.space, t.smallest).corrected(0.0, stretch(it.before, it.rules, it.signal)),
            learnt,
        ),
        "level_evidence": (base, settled),
    }
    for name, (without, with_it) in pairs.items():
        gain = pinball(without, t.clipped, levels) - pinball(with_it, t.clipped, levels)
        found[name][t.horizon] = with_gain(found[name][t.horizon], gain / (0.5 * t.unit), t.pending)
    for name, row in {"expert_ledger": q, "level_ledger": base}.items():
        found[name] = with_gradient(getattr(it.before, name), ledger_gradient(row, it.y, levels), t.pending)
    return found


def capped(q: Array, memory: Any, expert: Array, space: Any) -> Array:
    """Not beyond the expert and the recent outcomes by more than two spreads, nor beyond the bounds."""
    old, median = memory.statistics, expert[expert.size // 2]
    ends, far = [expert[0], expert[-1]], 0.0
    if old[5]:
        far = old[18]
        ends += [old[4], median - far, median + far]
    least = min(ends) - 2 * max(median - expert[0], far)
    most = max(ends) + 2 * max(expert[-1] - median, far)
    return np.clip(np.clip(q, least, most), space.low, space.high)


class Corrected(NamedTuple):
    """What is recorded of the corrected expert, and its quantiles."""

    record: Array
    learners: Array
    tracked: Array
    quantiles: Array


def tracked(memory: Any, record: Any, space: Any, rules: Any, signal: Array) -> Corrected:
    """What the learners and quantile trackers say, and the corrected expert, when a forecast is made."""
    old, pending, smallest = memory.statistics, float(record.info[2]), float(record.info[10])
    expert = Quantiles(record.experts[0], space, smallest)
    median = expert.q[expert.q.size // 2]
    x = np.zeros(9)
    x[0] = usual_move = 1.0
    if old[5] > 0:
        values = [*(median + old[1:4]), old[4], *old[22:24]]
        x[1:7] = np.clip([expert.score(value)[0] / old[0] for value in values], -8, 8)
        x[7:] = [season_ago(memory, which, pending) / old[0] for which in range(2)]
        moved = abs(median - old[20])
        if old[5] > 5 and moved > 6 * old[21]:
            usual_move = (6 * old[21] / moved) ** 2
    scale = max(0.5 * float(np.diff(expert.at([-1.0, 1.0]))[0]), 0.1 * sum(expert.slopes))
    found = np.array([*x, scale, *expert.slopes, old[0], median, usual_move])
    learners, said = [], []
    for c, (count, memory_of, _) in enumerate(rules.learners):
        slow, fast = memory.spread[c]
        own = np.array([1.0, math.log((fast + 0.1 * slow) / (1.1 * slow)), 0.0, 0.0, 0.0])
        if old[5] > 5:
            own[2] = np.clip((median - old[6]) / math.sqrt(old[7] + 1e-300), -3, 3)
            own[3] = np.clip(math.log(scale) - old[8], -2, 2)
            own[4] = math.log(1 + abs(x[4])) - old[9]
        use = slice(int(count))
        z = (x * trusted(rules, c, usual_move))[use]
        location = old[0] * float(memory.location[c, use] @ z)
        unsure = math.sqrt(1 + z @ memory.location_cov[c][use, use] @ z) * (1 + max(1 - memory_of, 1 / (old[5] + 20)))
        spread = old[0] * slow * math.exp(np.clip(memory.fit[c] @ own, -1.5, 1.5)) * unsure
        said.append((location, spread))
        learners.append([location, spread, *own])
    offsets = offsets_of(memory, rules, signal, scale / math.sqrt(math.pi))
    trackers = [with_offsets(expert.q, own, space) for own in offsets]
    loss = memory.track_loss[horizon(pending)]
    blend = blended(loss, (pending, old[5]), expert, said, trackers, rules, signal)
    learnt = capped(blend, memory, expert.q, space)
    share = share_of(memory.track_evidence[horizon(pending)], hint(memory, rules, signal, pending), prior_odds(pending))
    base = share * learnt + (1 - share) * expert.corrected(0.0, stretch(memory, rules, signal))
    settled = with_offsets(base, spread_of(base, space) * memory.level_offsets, space)
    settled = capped(settled, memory, expert.q, space)
    fault = min(max(beyond_chance(memory.level_ledger) - 2, 0.0), 3.0)
    share = share_of(memory.level_evidence[horizon(pending)], fault, 0.8 / (1 - 0.9 * share / (1 + min(pending, 8))))
    rows = np.array([*trackers, learnt, base, settled])
    return Corrected(found, np.array(learners), rows, share * settled + (1 - share) * base)


def blended(
    loss: Array,
    counts: tuple[float, float],  # outcomes outstanding, and so far
    expert: Quantiles,
    said: list[tuple[float, float]],
    trackers: list[Array],
    rules: Any,
    signal: Array,
) -> Array:
    """The mean quantiles of what is awake; the learners count together, at their mean location and spread."""
    awake = np.array([True] * len(said) + [bool(signal.size) or not share for _, _, share in rules.trackers])
    pending, outcomes = counts
    young = (outcomes + 1) / (outcomes + 10) if signal.size else 1.0
    odds = np.array([young * (1 + min(pending, 8)) ** -2] * len(said))
    odds = np.append(odds, [1.0 if share else young for _, _, share in rules.trackers])
    weights = np.where(awake, odds * np.exp(-2 * (loss - loss[awake].min())), 0.0)
    own = weights[: len(said)]
    location, spread = own @ np.array(said) / own.sum()
    rows = np.array([expert.corrected(location, spread), *trackers])
    found: Array = np.array([own.sum(), *weights[len(said) :]]) @ rows / weights.sum()
    return found


# --- the last layer


def usual_temperature(memory: Any, pending: float, sides: Array) -> float:
    """8; more for late outcomes and while the ledger is no larger than chance makes it, less where it binds soon."""
    owed = np.where((sides > 0) & (memory.total < 0), 0.0, memory.total)
    chance = 6 * (1 + pending) * memory.statistics[19]
    softness = 1 + chance / max(owed @ owed, chance / 1000) if chance else 1.0
    firm = min(max(2 * (1 - owed @ owed / memory.account[0]), 0.02), 1.0)
    return float(8 * (1 + pending) ** 0.85 * softness * firm)


def squares(it: Settled) -> float:
    """Squared sizes of what the ledger was given, added up."""
    kept = it.rules.discount
    step = it.after.total - kept * it.before.total
    return float(kept**2 * it.before.statistics[19] + step @ step)
