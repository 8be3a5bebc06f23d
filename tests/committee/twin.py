"""The committee in numpy, written plainly from its definitions: slow, and without a line of the kernels.

Constants stand here as numbers: a definition that took them from the code could not tell that they had changed.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Array = NDArray[np.float64]

SHORT, LONG = (7, 12, 24, 48, 96), (52, 168, 288, 336, 365)
RING = 368
# Sizes and losses enter as at most this many usual ones.
MOST = 10.0
# Name, forgetting and share of the prior of each member beside the base forecast; the last one needs a pool.
MEMBERS = (("correction", 0.99, 1.0), ("house", 0.998, 0.4), ("pooled", 0.99, 1.0))


def at(values: dict[float, float], newest: float, time: float) -> float:
    """Number at a time; nan if it is unknown or more than a year of steps before the newest."""
    return values.get(time, np.nan) if newest - RING < time <= newest else np.nan


class Series:
    """Outcomes in the working scale, and seasons from the autocorrelation of their differences."""

    def __init__(self, presumed: tuple[int, int]) -> None:
        self.values: dict[float, float] = {}
        self.n, self.mean, self.size, self.power, self.newest = 0, 0.0, 0.0, 0.0, np.nan
        self.cov, self.presumed, self.seasons = dict.fromkeys(SHORT + LONG, 0.0), presumed, list(presumed)

    def newest_three(self) -> list[float]:
        known = [self.values[t] for t in sorted(self.values, reverse=True)[:3]]
        return (known + known[-1:] * 2)[:3] if known else [np.nan] * 3

    def learn_mean(self, y: float) -> None:
        if self.n == 1:
            self.mean = y
            return
        far = y - self.mean
        if self.n > 2 and self.size:
            far = np.clip(far, -10 * self.size, 10 * self.size)
        self.mean += max(1 / self.n, 0.01) * far
        self.size += max(1 / (self.n - 1), 0.01) * (abs(far) - self.size)

    def observe(self, time: float, y: float) -> None:
        if time in self.values:
            return
        step, late = y - self.newest_three()[0], time < self.newest
        self.values[time] = y
        self.n += 1
        self.learn_mean(y)
        if late:
            return
        self.newest = time
        if np.isnan(step):
            return
        if self.n > 2 and self.power:
            most = 10 * np.sqrt(self.power / min(self.n - 2, 1000))
            step = np.clip(step, -most, most)
        self.power = 0.999 * self.power + step**2
        for m in self.cov:
            before = at(self.values, time, time - m) - at(self.values, time, time - m - 1)
            self.cov[m] = 0.999 * self.cov[m] + (0.0 if np.isnan(before) else step * before)
        if self.n % 20 == 0:
            for i, candidates in enumerate((SHORT, LONG)):
                best, self.seasons[i] = 0.2 * self.power, self.presumed[i]
                for m in candidates if not self.presumed[i] else ():
                    # a longer season has to be higher by a tenth
                    if self.n >= 2 * m + 20 and self.cov[m] > best:
                        best, self.seasons[i] = 1.1 * self.cov[m], m


def seasons_before(values: dict[float, float], newest: float, time: float, season: float) -> float:
    """Number a whole number of seasons before a time, the newest that is known."""
    if season == 0 or np.isnan(newest):
        return np.nan
    return at(values, newest, time - season * max(-(-(time - newest) // season), 1))


class Known:
    """What is known when a forecast is issued."""

    base: Array
    x: dict[str, Array]
    near: tuple[float, float, float]
    median = spread = unit = lag = evidence = reach = last = mean = error = common = time = 0.0
    active = False


class Sum:
    """Mean over the outcomes of a time step."""

    def __init__(self) -> None:
        self.total: Any = 0.0
        self.count = 0

    def add(self, value: Any) -> None:
        self.total, self.count = self.total + value, self.count + 1

    def take(self) -> Any:
        found = self.total / self.count
        self.total, self.count = 0.0, 0
        return found


class Spread:
    """Log spread by least squares, and shape; `shared` has those of a pool."""

    def __init__(self, levels: Array, shared: Any = None) -> None:
        self.levels, self.normal = levels, 1.25 * norm.ppf(levels)
        self.density = np.maximum(norm.pdf(norm.ppf(levels)) / 1.25, 0.02)
        self.slow = self.fast = 0.0
        self.n, self.gram, self.moment, self.shape = 0.0, np.zeros((6, 6)), np.zeros(6), self.normal.copy()
        self.shared, self.sums = shared, [Sum(), Sum(), Sum()]

    def predict(self, i: Known, centre: float) -> tuple[Array, Array, float]:
        slow, fast = (np.array([self.slow, self.fast]) if self.n else np.full(2, i.spread)) + 1e-9 * i.spread
        far = [clipped(i.last - centre, i.unit), clipped(i.error, i.unit)]
        ratios = np.clip(np.log(slow / i.spread), -4, 4), np.clip(np.log(fast / slow), -3, 3)
        x = np.array([1.0, *ratios, *np.log1p(np.abs(far)), 0.2 * clipped(centre - i.mean, i.unit)])
        gram, moment = self.gram, self.moment
        if i.active:
            gram = 0.3 * gram + 3.0 * self.shared.gram
            moment = 0.3 * moment + 3.0 * self.shared.moment
        theta = np.linalg.solve(gram + i.lag * np.diag([20.0, 3, 3, 10, 10, 10]), moment) if self.n else np.zeros(6)
        size = i.spread * np.exp(np.clip(theta @ x, -4, 4))
        n, shape = (self.shared.n, self.shared.shape) if i.active else (self.n, self.shape)
        k = n / (n + 50 * i.lag)
        return centre + size * (k * shape + (1 - k) * (i.base - i.median) / i.spread), x, size

    def step(self, missed: Array, weight: float) -> None:
        self.shape = np.sort(self.shape + weight * missed / self.density / min(self.n + 4, 500))

    def update(self, i: Known, error: float, x: Array, size: float) -> None:
        u, a = np.clip(error / size, -30, 30), min(abs(error), 20 * size)
        z = np.log(max(a, 0.05 * size) / i.spread) + 0.35
        if self.shared is not None:
            rows = np.outer(x, x), x * z, self.levels - (u <= self.shared.shape)
            for total, row in zip(self.shared.sums, rows, strict=True):
                total.add(row)
        self.step(self.levels - (u <= self.shape), 1.0)
        self.fast += max(1 / (self.n + 1), 0.08) * (a - self.fast)
        self.slow += max(1 / (self.n + 1), 0.01) * (a - self.slow)
        self.gram, self.moment = 0.999 * self.gram + np.outer(x, x), 0.999 * self.moment + x * z
        self.n += 1

    def close(self, weight: float) -> None:
        gram, moment, missed = (total.take() for total in self.sums)
        kept = 1 - 0.03 * weight
        self.gram, self.moment = kept * self.gram + weight * gram, kept * self.moment + weight * moment
        self.step(missed, weight)
        self.n += weight


def clipped(distance: float, unit: float) -> float:
    """Feature: a distance in units; 0 if it is unknown."""
    return 0.0 if np.isnan(distance) else float(np.clip(distance / unit, -8, 8))


class Member:
    """Regression around the base median or the newest outcome; in the pooled one the pool's coefficients."""

    def __init__(self, name: str, forget: float, levels: Array, pool: Any) -> None:
        self.name, self.forget = name, forget
        self.anchor = "last" if name == "house" else "median"
        size = 8 if name == "house" else 19
        self.theta, self.cov, self.pool = np.zeros(size), np.zeros((size, size)), pool
        self.spread = Spread(levels, pool.spreads[name] if pool else None)

    def predict(self, i: Known) -> tuple[Array, Any]:
        x, anchor = i.x[self.anchor], getattr(i, self.anchor)
        theta = self.theta
        if self.name == "pooled":
            theta = self.pool.theta if i.active else np.zeros(19)
        centre = anchor + np.clip(x @ theta, -10, 10) * i.unit
        centre = i.median + np.clip(centre - i.median, -i.reach * i.unit, i.reach * i.unit)
        quantiles, features, size = self.spread.predict(i, centre)
        return np.sort(quantiles), (x, centre, features, size)

    def update(self, i: Known, memo: Any, y: float, lag: float) -> None:
        x, centre, features, size = memo
        target = np.clip((y - getattr(i, self.anchor)) / i.unit, -8, 8)
        if self.name == "pooled":
            self.pool.sums[0].add(np.outer(x, x))
            self.pool.sums[1].add(x * target)
        else:
            if self.spread.n == 0:
                self.cov = np.eye(len(x)) / (10 * lag)
            forget = 1 - (1 - self.forget) / lag
            gain = self.cov @ x / (forget + x @ self.cov @ x)
            self.theta = self.theta + gain * np.clip(target - x @ self.theta, -4, 4)
            cov = (self.cov - np.outer(gain, x @ self.cov)) / forget
            self.cov = cov * min(1.0, 50 / np.trace(cov))
        self.spread.update(i, y - centre, features, size)


def hats(levels: Array) -> Array:
    """Interpolation from the knots to the levels."""
    knots = np.quantile(levels, np.linspace(0, 1, min(9, len(levels))))
    return np.stack([np.interp(levels, knots, e) for e in np.eye(len(knots))], axis=1)


class Weights:
    """Bernstein online aggregation with a prior, at the knots."""

    def __init__(self, knots: int, prior: Any) -> None:
        self.prior = np.array(prior)
        self.regret, self.square = np.zeros((2, knots, len(self.prior)))

    def now(self, count: int | None = None, fastest: float = 0.5) -> Array:
        """Weights; of the first `count` members only, if given."""
        prior, r, v = self.prior[:count], self.regret[:, :count], self.square[:, :count]
        if count is not None and count > 1:
            prior = np.append(0.75, 0.25 * prior[1:] / prior[1:].sum())
        eta = np.minimum(fastest, np.sqrt(np.maximum(-np.log(prior), 0.7) / (v + 1e-9)))
        w = np.log(prior) + eta * r - eta**2 * v
        w = np.exp(w - w.max(axis=1, keepdims=True))
        found = np.zeros(self.regret.shape)
        found[:, :count] = w / w.sum(axis=1, keepdims=True)
        return found

    def update(self, r: Array, lag: float, weight: float = 1.0) -> None:
        kept = 1 - 0.0005 * weight
        self.regret = kept * self.regret + weight * r / lag
        self.square = kept * self.square + weight * (r / lag) ** 2


def regrets(q: Array, mix: Array, y: float, levels: Array, unit: float) -> Array:
    """Regrets of rows of quantiles at the knots, by the gradient of the pinball loss, clipped."""
    spread_out = hats(levels) / hats(levels).sum(axis=0)
    return np.clip(spread_out.T @ (((y < mix) - levels) * (mix - q)).T / unit, -3, 3)


def usual_loss(usual: float, n: int, q: Array, y: float, levels: Array) -> tuple[float, float]:
    """Running pinball loss after n outcomes, and the unit of regrets."""
    loss, middle = np.maximum(levels * (y - q), (levels - 1) * (y - q)).mean(), np.median(q)
    least = max(0.15 * np.abs(q - middle).mean(), 1e-12 * abs(middle), 1e-280)
    loss = min(loss, MOST * max(usual, least)) if usual else loss
    usual += max(1 / n, 0.03) * (loss - usual)
    return usual, max(usual, least)


class Pool:
    """What the streams of a horizon share; `close` ends a time step."""

    def __init__(self, levels: Array) -> None:
        self.streams, self.steps, self.lag, self.error, self.n = 0, 0.0, 1.0, 0.0, 0
        self.weights = Weights(min(9, len(levels)), prior_of(True))
        self.offsets, self.theta = np.zeros(len(levels)), np.zeros(19)
        self.gram, self.moment = np.zeros((19, 19)), np.zeros(19)
        self.spreads = {name: Spread(levels) for name, _, _ in MEMBERS}
        self.errors, self.regret, self.width, *self.sums = (Sum() for _ in range(5))

    def close(self) -> None:
        if self.errors.count == 0:
            return
        weight = min(self.errors.count / self.streams, 1.0)
        self.steps += weight
        self.error += weight * (self.errors.take() - self.error)
        self.offsets = self.offsets + weight * 0.28 / (1 + self.steps / 50) * self.width.take()
        self.weights.update(self.regret.take(), self.lag, weight)
        for spread in self.spreads.values():
            spread.close(weight)
        kept = 1 - 0.01 * weight
        self.gram = kept * self.gram + weight * self.sums[0].take()
        self.moment = kept * self.moment + weight * self.sums[1].take()
        ridge = 5 * self.lag * max(0.99**self.steps, 0.02)
        self.theta = np.linalg.solve(self.gram + ridge * np.eye(19), self.moment)


def prior_of(pooled: bool) -> list[float]:
    shares = [share for name, _, share in MEMBERS if pooled or name != "pooled"]
    return [0.75, *(0.25 * share / sum(shares) for share in shares)]


class Stream:
    """One series at one horizon with one expert."""

    def __init__(self, levels: Array, series: Series, low: float, high: float, pool: Pool | None = None) -> None:
        self.levels, self.series, self.low, self.high, self.pool = levels, series, low, high, pool
        self.middle, self.n, self.lag, self.scale, self.loss, self.mix_scale = len(levels) // 2, 0, 1.0, 0.0, 0.0, 0.0
        self.move, self.at, self.gap = 0.0, [0, 0], [0.0, 0.0]
        self.members = [Member(m, f, levels, pool) for m, f, _ in MEMBERS if pool or m != "pooled"]
        self.weights, self.offsets = Weights(min(9, len(levels)), prior_of(pool is not None)), np.zeros(len(levels))
        self.errors, self.error_at, self.newest = [0.0] * 3, {}, np.nan  # type: ignore[var-annotated]
        # the working scale is the root of the distance from the bound of a half line, and on an interval from zero
        self.root = 1 if low == 0 or -np.inf < low < high == np.inf else -1 if low == -np.inf < high < np.inf else 0
        self.mirror = [int(np.argmin(np.abs(levels - (1 - a)))) for a in levels]

    def working(self, v: Any) -> Any:
        if self.root > 0:
            return np.sqrt(np.maximum(v - self.low, 0))
        return -np.sqrt(np.maximum(self.high - v, 0)) if self.root < 0 else v

    def original(self, v: Any) -> Any:
        if self.root > 0:
            return np.minimum(self.low + np.maximum(v, 0) ** 2, self.high)
        return self.high - np.minimum(v, 0) ** 2 if self.root < 0 else np.clip(v, self.low, self.high)

    def known(self, time: float, q: Array, near: Any = (np.nan,) * 3, short: Any = None) -> Known:
        """`near`: base medians one step nearer, further, and of the issue before; `short`: stream of the shortest."""
        i, s = Known(), self.series
        y = s.newest_three()
        i.time, i.base, i.lag, i.error = time, self.working(q), self.lag, self.errors[0]
        i.median = i.base[self.middle]
        i.last = i.median if s.n == 0 else y[0]
        least = 1e-9 * abs(i.median)
        i.spread = max(np.abs(i.base - i.median).mean(), 0.05 * self.scale, least)
        i.unit = i.spread if self.n == 0 else 0.3 * i.spread + 0.7 * max(self.scale, least)
        i.active = self.pool is not None and self.pool.streams > 1
        i.evidence = (self.pool.steps if self.pool and i.active else self.n) / self.lag
        i.reach = min(2 * (1 + i.evidence / 25), 10)
        i.mean = s.mean if s.n else np.nan
        seasonal = [seasons_before(s.values, s.newest, time, m) for m in s.seasons]
        now = [at(s.values, s.newest, s.newest - m) if m else np.nan for m in s.seasons]
        of_errors = [seasons_before(self.error_at, self.newest, time, m) for m in s.seasons]
        i.x = {}
        for name, anchor in (("median", i.median), ("last", i.last)):
            rows = y[1] - y[0], y[2] - y[0], seasonal[0] - anchor, now[0] - i.last
            rows += seasonal[1] - anchor, now[1] - i.last, i.mean - anchor
            i.x[name] = np.array([1.0, *(clipped(v, i.unit) for v in rows)])
        error_short = self.errors[2] if short is None else short.errors[0]
        rows = i.last - i.median, self.errors[0], self.errors[1], error_short, *of_errors
        rows += tuple(v - i.median for v in near)
        pools = [self.pool, self.pool if short is None else short.pool]
        common = [p.error if p and i.active else 0.0 for p in pools]
        i.x["median"] = np.concatenate((i.x["median"], [clipped(v, i.unit) for v in rows], common))
        usual, move = 4 * max(self.move, i.unit), abs(i.last - i.median)
        if self.n and move > usual:
            i.x["median"][[3, 5, 7, 8]] *= (usual / move) ** 2
        return i

    def predict(self, i: Known, q: Array) -> tuple[Array, Any]:
        parts = [member.predict(i) for member in self.members]
        rows = np.array([q, *(self.original(v) for v, _ in parts)])
        if self.pool and i.active:
            w = 0.5 * self.weights.now() + 0.5 * self.pool.weights.now()
        else:
            w = self.weights.now(3)
        n = i.evidence + 1e-3
        w[:, 1:] *= n / (n + 10)
        w = hats(self.levels) @ (w / w.sum(axis=1, keepdims=True))
        mix = np.sort((w.T * rows).sum(axis=0))
        scale = 2 * i.unit * (self.mix_scale if self.n else 1.0)
        shown = self.working(mix) + scale * self.offsets
        if self.pool and i.active:
            shown = shown + scale * self.pool.offsets
        found, near = self.original(shown), 0.05 * (q[-1] - q[0])
        # nearer to a bound that has outcomes than half of the gap beside it; or the base quantile is on it
        if self.at[0]:
            close = (found - self.low < 0.5 * self.gap[0]) | ((q <= self.low) & (found - self.low < near))
            found = np.where(close, self.low, found)
        if self.at[1]:
            close = (self.high - found < 0.5 * self.gap[1]) | ((q >= self.high) & (self.high - found < near))
            found = np.where(close, self.high, found)
        return np.sort(found), (i, parts, rows, mix, shown)

    def update(self, memo: Any, outcome: float, late: float) -> None:
        i, parts, rows, mix, shown = memo
        y = self.working(outcome)
        self.lag += max(1 / (self.n + 1), 0.02) * (1 + late - self.lag)
        for member, (_, own) in zip(self.members, parts, strict=True):
            member.update(i, own, y, self.lag)
        for side, away in enumerate((outcome - max(self.low, -1e110), min(self.high, 1e110) - outcome)):
            if away <= 0:
                self.at[side] += 1
            else:
                self.gap[side] = min(self.gap[side] or away, away)
        error = y - i.median
        self.scale += max(1 / (self.n + 1), 0.03) * (self.cut(i, abs(error)) - self.scale)
        move = min(abs(i.last - i.median), 10 * max(self.move, i.unit))
        self.move += max(1 / (self.n + 1), 0.03) * (move - self.move)
        self.n += 1
        self.learn_offsets(i, y, self.working(mix)[self.middle], shown)
        self.error_at[i.time] = error
        if not i.time < self.newest:
            self.newest, self.errors = i.time, [error, *self.errors[:2]]
        self.loss, unit = usual_loss(self.loss, self.n, rows[0], outcome, self.levels)
        r = regrets(rows, mix, outcome, self.levels, unit)
        self.weights.update(r, self.lag)
        if self.pool:
            self.pool.streams += self.n == 1
            self.pool.lag = self.lag
            self.pool.errors.add(np.clip(error / i.unit, -8, 8))
            self.pool.regret.add(r)

    def cut(self, i: Known, size: float) -> float:
        """Size of an error, cut to usual ones if any are known."""
        return min(size, MOST * i.unit) if i.spread > 2e-9 * abs(i.median) else size

    def learn_offsets(self, i: Known, y: float, middle: float, shown: Array) -> None:
        self.mix_scale += max(1 / self.n, 0.03) * (min(abs(y - middle) / i.unit, MOST) - self.mix_scale)
        miss = self.levels - (y <= shown)
        shift, width = (miss + miss[self.mirror]) / 2, (miss - miss[self.mirror]) / 2 / np.sqrt(self.lag)
        rate = 0.04 / (1 + self.n / self.lag / 50) * (0.2 if i.active else 1.0)
        self.offsets = self.offsets + rate * (0.3 * shift / self.lag + width)
        if self.pool:
            self.pool.width.add(width)


class Experts:
    """Several experts of one series: each is corrected, then they are mixed with equal priors."""

    def __init__(self, streams: list[Stream]) -> None:
        self.streams, self.levels, self.n, self.loss = streams, streams[0].levels, 0, 0.0
        self.weights = Weights(min(9, len(self.levels)), np.full(len(streams), 1 / len(streams)))

    def predict(self, time: float, experts: Array) -> tuple[Array, Any]:
        there = ~np.isnan(experts[:, 0])
        parts = [
            s.predict(s.known(time, q), q) if ok else None
            for s, q, ok in zip(self.streams, experts, there, strict=True)
        ]
        rows = np.array([part[0] if part else np.zeros(len(self.levels)) for part in parts])
        self.weights.prior = np.ones(len(there))
        w = self.weights.now() * there
        w = (hats(self.levels) @ (w / w.sum(axis=1, keepdims=True))).T
        mix = np.sort((w * rows).sum(axis=0))
        return mix, (time, parts, rows, mix, there)

    def update(self, memo: Any, y: float, late: float) -> None:
        time, parts, rows, mix, there = memo
        self.n += 1
        self.loss, unit = usual_loss(self.loss, self.n, mix, y, self.levels)
        r = regrets(np.where(there[:, None], rows, mix), mix, y, self.levels, unit)
        self.weights.update(r, max(s.lag for s in self.streams))
        for stream, part in zip(self.streams, parts, strict=True):
            if part:
                stream.update(part[1], y, late)
        self.streams[0].series.observe(time, self.streams[0].working(y))
