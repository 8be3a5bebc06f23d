"""The learners on ordered spaces, written plainly from their definitions: slow, and without a line of the kernels.

Numbers stand here as numbers: a definition that took them from the code could not tell that they had changed.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import truncnorm

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
    """A round and its outcome, and the memory before and after."""

    before: Any
    record: Any
    y: float
    after: Any
    space: Any
    rules: Any


class Taught:
    """What a round tells the learners."""

    def __init__(self, it: Settled) -> None:
        self.it = it
        info, cells = it.record.info, it.record.cells
        n, self.pending, self.low, self.high = int(info[0]), float(info[2]), float(info[5]), float(info[6])
        self.left, self.right, self.prior, self.expert, self.played = cells[:5, :n]
        self.members = cells[6:, :n]
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
    """Discounted CRPS of the members, the corrected expert and the expert."""
    t, found = Taught(it), it.before.member_loss.copy()
    losses = np.array([t.crps(mass) for mass in (*t.members, t.prior, t.expert)])
    found[t.horizon] = t.kept * found[t.horizon] + t.weight * losses / t.unit
    return found


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


def tracker(it: Settled) -> dict[str, Array]:
    """All that the learners of location and spread learn."""
    t = Taught(it)
    old, record = it.before.statistics, it.record.tracker_record
    found = {
        name: getattr(it.before, name).copy()
        for name in ("location", "location_cov", "spread", "fit", "fit_cov", "track_loss")
    }
    expert = Quantiles(it.record.experts[0], it.space, t.smallest)
    score, variance = expert.outcome_score(it.y)
    size, most = old[0], 6.0 if np.isfinite(it.space.high - it.space.low) or old[5] < 100 else 3.0
    learners = record[10:].reshape(-1, 7)
    quantiles = [expert.corrected(0.0, 1.0), *(expert.corrected(own[0], own[1]) for own in learners)]
    losses = np.array([pinball(q, t.clipped, it.space.levels) for q in quantiles])
    found["track_loss"][t.horizon] = t.kept * found["track_loss"][t.horizon] + t.weight * losses / (0.5 * t.unit)
    x = record[:5] * np.array([1.0, *[record[8] / size] * 4])
    for c, (count, memory) in enumerate(it.rules.learners):
        use = slice(int(count))
        theta, P = found["location"][c], found["location_cov"][c]
        error = min(max(score / size, -most), most) - theta[use] @ x[use]
        theta[use], P[use, use] = least_squares(theta[use], P[use, use], x[use], error, t.weight, 0.5)
        deviation = math.sqrt(error**2 + variance / size**2) / math.sqrt(2 / math.pi)
        surprise = min(deviation * size / learners[c, 1] - 1, 4.0)
        found["fit"][c], found["fit_cov"][c] = least_squares(
            found["fit"][c], found["fit_cov"][c], learners[c, 2:], surprise, t.weight, 0.1
        )
        slow, fast = found["spread"][c]
        counted = deviation if most == 6 else min(deviation, most * slow)
        found["spread"][c] = (
            max(slow + (1 - memory) * t.weight * (counted - slow), 1e-3),
            fast + 0.1 * t.weight * (min(deviation, 6 * slow) - fast),
        )
    square = min(score**2 + variance, (most * size) ** 2)
    new = max(math.sqrt(size**2 + 0.01 * t.weight * (square - size**2)), 1e-3)
    found["location"][:, 0] *= size / new
    found["spread"] *= size / new
    rate = max(0.002, 1 / (old[5] + 1))
    step = record[9] - old[6]
    found["statistics"] = np.array(
        [
            new,
            it.y - record[9],
            old[1],
            old[2],
            it.y,
            old[5] + 1,
            old[6] + rate * step,
            (1 - rate) * (old[7] + rate * step**2),
            old[8] + rate * (math.log(record[5]) - old[8]),
            old[9] + rate * (math.log(1 + abs(record[4])) - old[9]),
        ]
    )
    return found


def tracked(memory: Any, record: Any, space: Any, rules: Any) -> tuple[Array, Array]:
    """What the tracker records when a forecast is made, and the quantiles of the corrected expert."""
    old, pending, smallest = memory.statistics, float(record.info[2]), float(record.info[10])
    expert = Quantiles(record.experts[0], space, smallest)
    median = expert.q[expert.q.size // 2]
    x = np.zeros(5)
    x[0] = 1.0
    if old[5] > 0:
        values = [*(median + old[1:4]), old[4]]
        x[1:] = np.clip([expert.score(value)[0] / old[0] for value in values], -8, 8)
    scale = max(0.5 * float(np.diff(expert.at([-1.0, 1.0]))[0]), 0.1 * sum(expert.slopes))
    found = [*x, scale, *expert.slopes, old[0], median]
    loss = memory.track_loss[horizon(pending)]
    odds = np.exp(-2 * (loss - loss.min())) * np.array([1.0, *[(1 + pending) ** -0.5] * len(rules.learners)])
    said = [(0.0, 1.0)]
    for c, (count, _) in enumerate(rules.learners):
        slow, fast = memory.spread[c]
        features = np.array([1.0, math.log((fast + 0.1 * slow) / (1.1 * slow)), 0.0, 0.0, 0.0])
        if old[5] > 5:
            features[2] = np.clip((median - old[6]) / math.sqrt(old[7] + 1e-300), -3, 3)
            features[3] = np.clip(math.log(scale) - old[8], -2, 2)
            features[4] = math.log(1 + abs(x[4])) - old[9]
        location = old[0] * float(memory.location[c, : int(count)] @ x[: int(count)])
        spread = old[0] * slow * math.exp(np.clip(memory.fit[c] @ features, -1.5, 1.5))
        said.append((location, spread))
        found += [location, spread, *features]
    location, spread = odds @ np.array(said) / odds.sum()
    return np.array(found), expert.corrected(location, spread)


def mixed(t: Taught, loss: Array) -> Array:
    """The mix of the members, the corrected expert and the expert by their losses: the prior of the last layer."""
    own = loss[t.horizon]
    odds = np.exp(-2 * (own - own.min())) * np.array([*[(1 + t.pending) ** -0.5] * (own.size - 1), 1.0])
    blend = odds @ np.array([*t.members, t.prior, t.expert]) / odds.sum()
    value: Array = (1 - 1e-4) * blend + 1e-4 * t.prior
    return value
