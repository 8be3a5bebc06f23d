"""Made-up streams with a known truth: each is drawn from a seed and does not depend on the method."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter
from scipy.special import ndtri

from orcast.evaluate.metrics import LEVELS
from research.comparison.recipes import HUB, TWENTIETHS
from research.comparison.stream import Array, Stream
from research.learners import Naive, Task

WEEK, HORIZONS = 7, 4
NARROW = 0.9  # spread of the strong panel, as a share of the right one
FORESEEN = 0.7  # share of the cycle's expected change that the strong panel's forecaster knows
SEASON, DAMPING = 30.0, 0.97  # weeks of an epidemic, and what is left of a wave after a week
COMMON, LOCAL, WALK = 0.16, 0.07, 0.09  # weekly innovations: of the common wave, of each place's own, of its level
DAY, WEEKLY, EXPERT_DAYS = 24, 168, 28


def normal(mean: Array, spread: Array | float = 1.0, levels: Array = LEVELS) -> Array:
    """Quantiles of normal distributions, a row each."""
    return np.asarray(mean[:, None] + np.reshape(spread, (-1, 1)) * ndtri(levels))


def one_step(name: str, experts: dict[str, Array], y: Array, kind: str = "one-step", delay: int = 1) -> Stream:
    """Stream of forecasts at 99 levels whose outcomes are known `delay` rounds later."""
    t = np.arange(y.size)
    return Stream(name, kind, LEVELS, experts, y, t, t + delay)


def perfect(rounds: int, seed: int, spread: float = 1.0) -> Stream:
    """Outcomes drawn from the base forecasts, whose spread is multiplied by `spread`."""
    rng = np.random.default_rng(seed)
    mu = rng.normal(0.0, 5.0, rounds)
    return one_step("perfect", {"expert": normal(mu, spread)}, mu + rng.standard_normal(rounds))


def strong_panel(seed: int, series: int = 50, weeks: int = 80) -> Stream:
    """Counts of an epidemic in many places, and a forecaster that errs only by its width and at turning points.

    Logarithms of the expected counts are a common stochastic cycle (waves of about 30 weeks), a smaller one of each
    place, and a random walk; innovations have Student's t distribution with 5 degrees of freedom. The forecaster knows
    the present state and 70% of the expected change of the cycles, so it is late at each peak. Its spread is that of
    its errors, derived from the process, times 0.9. Counts are Poisson.
    """
    rng = np.random.default_rng([7, seed])
    turn = DAMPING * np.exp(2j * np.pi / SEASON)
    steps = weeks + HORIZONS
    scale = np.concatenate(([COMMON], np.full(series, LOCAL)))

    def shocks(*shape: int) -> Array:
        return np.asarray(rng.standard_t(5, shape) * np.sqrt(3.0 / 5.0))  # of variance 1

    stationary = scale / np.sqrt(1.0 - DAMPING**2)
    state = np.empty((steps, series + 1), dtype=complex)
    state[0] = stationary * (rng.standard_normal(series + 1) + 1j * rng.standard_normal(series + 1))
    for t in range(1, steps):
        state[t] = turn * state[t - 1] + scale * (shocks(series + 1) + 1j * shocks(series + 1))
    level = rng.uniform(3.0, 6.5, series) + np.cumsum(WALK * shocks(steps, series), axis=0)
    mean = np.exp(np.minimum(level + state[:, :1].real + state[:, 1:].real, 11.0))
    counts = rng.poisson(mean).astype(np.float64)
    parts = []
    for ahead in range(1, HORIZONS + 1):
        issued = np.arange(HORIZONS - ahead, steps - ahead)
        change = ((turn**ahead - 1.0) * state[issued]).real
        centre = np.log(mean[issued]) + FORESEEN * (change[:, :1] + change[:, 1:])
        unseen = ((1.0 - FORESEEN) * np.abs(turn**ahead - 1.0) * stationary) ** 2
        grown = scale**2 * (1.0 - DAMPING ** (2 * ahead)) / (1.0 - DAMPING**2)
        variance = (unseen + grown)[0] + (unseen + grown)[1] + ahead * WALK**2 + np.exp(-centre)
        q = np.exp(centre[:, :, None] + NARROW * np.sqrt(variance)[:, :, None] * ndtri(HUB))
        when, where = (grid.ravel() for grid in np.meshgrid(issued, np.arange(series), indexing="ij"))
        y = counts[issued + ahead].ravel()
        parts.append((y, when, when + ahead, where, np.full(when.size, ahead), q.reshape(-1, HUB.size)))
    y, issued, known, place, horizon, q = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((horizon, place, issued))
    days = 18_628  # 2021-01-01
    return Stream(
        f"strong panel {seed}", "weekly-late", HUB, {"expert": q[order]}, y[order],
        days + WEEK * issued[order], days + WEEK * known[order], 0.0, np.inf, place[order], horizon[order], clock="D",
    )  # fmt: skip


def pair(seed: int, rounds: int = 3000) -> Stream:
    """Two experts: the better base forecast cannot be improved, the other has errors that can be corrected.

    "noisy" is calibrated but sees the mean with an error of its own; "biased" knows the mean, but is too narrow and off
    by an amount that jumps to another value every 600 rounds or so. Raw, "noisy" has the lower loss.
    """
    rng = np.random.default_rng([11, seed])
    mu = 5.0 * np.sin(np.arange(rounds) / 40.0) + rng.normal(0.0, 2.0, rounds)
    y = mu + rng.standard_normal(rounds)
    blur = 0.75
    seen = mu + blur * rng.standard_normal(rounds)
    jumps = rng.random(rounds) < 1.0 / 600.0
    bias = rng.choice([-1.0, 1.0], jumps.sum() + 1) * rng.uniform(1.2, 2.0, jumps.sum() + 1)
    off = bias[np.cumsum(jumps)]
    experts = {"noisy": normal(seen, np.hypot(1.0, blur)), "biased": normal(mu + off, 0.6)}
    return one_step(f"pair {seed}", experts, y, "several experts")


def load(seed: int, rounds: int = 4000) -> Stream:
    """Hourly load 24 hours ahead by the value of a week before: a bad expert, although with its own error quantiles.

    A daily profile, lower at week-ends, moves with a temperature that follows the season and an autoregression of about
    three days; the noise is autoregressive over the hours, and holidays are days off.
    """
    rng = np.random.default_rng([13, seed])
    size = rounds + (EXPERT_DAYS + 14) * DAY
    t = np.arange(size)
    hour, day = t % DAY, t // DAY
    off = (day % 7 >= 5) | (rng.random(day[-1] + 1) < 0.02)[day]
    profile = 0.9 * np.sin(2 * np.pi * (hour - 8) / DAY) + 0.35 * np.sin(4 * np.pi * (hour - 6) / DAY)
    work = np.clip(np.sin(np.pi * (hour - 6) / 13.0), 0.0, None) * (hour >= 6) * (hour <= 19)
    weather = _autoregression(rng, size, np.exp(-1.0 / (3 * DAY))) + 1.5 * np.sin(2 * np.pi * (t / DAY + 40) / 365)
    noise = _autoregression(rng, size, 0.9)
    heat = weather * (1.0 + 0.3 * np.sin(2 * np.pi * (hour - 10) / DAY))
    y = 30.0 + 4.0 * profile + 4.0 * np.where(off, 0.15, 1.0) * work + 1.8 * heat + 0.5 * noise
    target = np.arange(size - rounds, size)
    task = Task(y, target - DAY + 1, target, np.zeros_like(target), WEEKLY, TWENTIETHS)
    q = Naive(empirical=True, window=EXPERT_DAYS * DAY)(task)
    return Stream(
        f"load {seed}", "day-ahead", TWENTIETHS, {"expert": q}, y[target],
        target - DAY, target, clock="h",
    )  # fmt: skip


def _autoregression(rng: np.random.Generator, size: int, memory: float) -> Array:
    """Autoregression of the first order with variance 1."""
    shocks = rng.standard_normal(size) * np.sqrt(1.0 - memory**2)
    shocks[0] /= np.sqrt(1.0 - memory**2)
    return np.asarray(lfilter([1.0], [1.0, -memory], shocks))
