"""Made-up experts in "do no harm": a perfect one, a narrow one, one that foresees jumps, one with a season, and two."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

import orcast as oc
from benchmarks.harm_rivals import last_known, multiqt, relative
from benchmarks.results import Line, Remark
from orcast.metrics import LEVELS, crps_quantiles, pinball

Vector = NDArray[np.float64]

PERFECT_LIMITS = {100: 0.007, 1_000: 0.003, 5_000: 0.0015}
NARROW, HELD, SMOOTH, NARROW_LIMIT = 2.0 / 3.0, 0.87, 10, 50.0
JUMP, EVERY, FADES, JUMP_LIMIT = 10.0, 100, 0.8, 1.1
LAGS, FORGETTING, SEASON_LIMIT = (1, 2, 3, 24, 168), 0.998, 1.03
TWO_LIMIT = 0.97
SCORES: Vector = ndtri(LEVELS)


def around(mean: Vector, spread: Vector | float = 1.0) -> Vector:
    """Normal quantiles at 99 levels, a row a round."""
    return mean[:, None] + np.outer(np.broadcast_to(spread, mean.shape), SCORES)


def played(q: Vector, y: Vector) -> Vector:
    """What the default makes of quantiles at 99 levels, on the line."""
    return oc.Recalibrator().run(q, y, levels=LEVELS)


def perfect(quick: bool) -> Iterator[Line | Remark]:
    """Outcomes drawn from the expert's own forecasts."""
    for rounds, horizons, seeds in ((100, (100,), 40 if quick else 200), (5_000, (1_000, 5_000), 2 if quick else 20)):
        ours, theirs = np.empty((seeds, rounds)), np.empty((seeds, rounds))
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            mu = rng.normal(0.0, 5.0, rounds)
            y = mu + rng.standard_normal(rounds)
            q = around(mu)
            ours[seed] = pinball(oc.Recalibrator(oc.Interval(-50, 50)).run(q, y, levels=LEVELS), y)
            theirs[seed] = pinball(q, y)
        for first in horizons:
            lost = (ours[:, :first] - theirs[:, :first]).sum(axis=1) / theirs[:, :first].sum() * seeds
            note = f"{seeds} seeds, standard error {lost.std() / np.sqrt(seeds):.2%}"
            limit = PERFECT_LIMITS[first]
            yield Line(f"perfect expert, first {first:,}", "pinball lost", lost.mean(), limit, form=".2%", note=note)


def held(q: Vector, mu: Vector) -> Vector:
    """The chance that an outcome with spread 1 around mu is in the 90% band of each row."""
    return ndtr(q[:, 94] - mu) - ndtr(q[:, 4] - mu)


def reached(shares: Vector) -> float:
    """Outcomes before the first ten rounds whose bands hold 87% in the mean; infinite if there are none."""
    smooth = np.convolve(shares, np.full(SMOOTH, 1.0 / SMOOTH), mode="valid")
    there = np.flatnonzero(smooth >= HELD)
    return float(there[0]) if there.size else np.inf


def narrow(quick: bool) -> Iterator[Line | Remark]:
    """An expert whose spread is two thirds of the right one."""
    seeds, rounds = (40, 250) if quick else (200, 400)
    ours, others = [], []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        mu = rng.normal(0.0, 5.0, rounds)
        y, q = mu + rng.standard_normal(rounds), around(mu, NARROW)
        ours.append(held(played(q, y), mu))
        if seed < seeds // 10:
            others.append(held(multiqt(y, q, LEVELS, low=-np.inf), mu))
    shares = np.mean(ours, axis=0)
    raw = held(around(np.zeros(1), NARROW), np.zeros(1))[0]
    after = ", ".join(f"{shares[t : t + SMOOTH].mean():.3f} after {t}" for t in (0, 25, 50, 100, 200))
    note = f"{seeds} seeds: {after}; expert {raw:.3f}; MultiQT {reached(np.mean(others, axis=0)):.0f}"
    yield Line("band too narrow by a third", "outcomes until 90% holds 87%", reached(shares), NARROW_LIMIT, form=".0f",
               note=note)  # fmt: skip


def jumps(quick: bool) -> Iterator[Line | Remark]:
    """A level that jumps, which the expert foresees, and noise that lasts, which it does not know of."""
    for anew, case in ((False, "foresees jumps"), (True, "foresees jumps, errors end there")):
        seeds, rounds = (3, 1_000) if quick else (10, 2_000)
        losses = np.mean([_jump_losses(np.random.default_rng(seed), rounds, anew) for seed in range(seeds)], axis=0)
        # the first jumps come before there is anything to learn from
        at = np.arange(2 * EVERY, rounds, EVERY)
        after = (at[:, None] + np.arange(1, 6)).ravel()
        between = np.setdiff1d(np.arange(2 * EVERY, rounds), np.append(at, after))
        ours, soon, else_ = (losses[1][rows].sum() / losses[0][rows].sum() for rows in (at, after, between))
        last, last_else = (losses[2][rows].sum() / losses[0][rows].sum() for rows in (at, between))
        note = (
            f"{at.size * seeds} jumps; five rounds after {soon:.3f}, all others {else_:.3f}; "
            f"last known outcome {last:.1f} at the jumps, {last_else:.3f} between"
        )
        yield Line(case, "CRPS at the jumps / expert's", ours, JUMP_LIMIT, form=".3f", note=note)


def _jump_losses(rng: np.random.Generator, rounds: int, anew: bool) -> list[Vector]:
    """The CRPS of each round: the expert's, ours and that of the last outcome; noise may begin anew at the jumps."""
    level = np.repeat(JUMP * np.cumsum(rng.choice([-1.0, 1.0], rounds // EVERY)), EVERY)
    parts = [_lasting(rng, EVERY) for _ in range(rounds // EVERY)] if anew else [_lasting(rng, rounds)]
    y, q = level + np.concatenate(parts), around(level)
    last = np.nan_to_num(last_known(y, np.arange(rounds) - 1, LEVELS))
    return [crps_quantiles(row, y) for row in (q, played(q, y), last)]


def _lasting(rng: np.random.Generator, rounds: int) -> Vector:
    """Noise of spread 1 of which a part lasts to the next round."""
    noise = np.sqrt(1.0 - FADES**2) * rng.standard_normal(rounds)
    noise[0] = rng.standard_normal()
    for t in range(1, rounds):
        noise[t] += FADES * noise[t - 1]
    return noise


def hourly(seed: int, hours: int) -> tuple[Vector, Vector, float]:
    """A year of hours, an expert's means that err by hour and by weekday, and the spread of its errors."""
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    mean = 100.0 + 10.0 * np.sin(2.0 * np.pi * t / 24.0) + 10.0 * np.sin(2.0 * np.pi * t / 8760.0)
    by_hour, by_day = rng.normal(0.0, 2.0, 24), rng.normal(0.0, 1.5, 7)
    errors = by_hour[t % 24] + by_day[t // 24 % 7] + rng.normal(0.0, 1.0, hours)
    return mean + errors, mean, float(np.sqrt(2.0**2 + 1.5**2 + 1.0))


def told(y: Vector, mean: Vector, spread: float) -> tuple[Vector, Vector]:
    """The same expert with recursive least squares on its errors at the lags, and a running scale."""
    errors, most = y - mean, max(LAGS)
    weights, inverse = np.zeros(len(LAGS)), 100.0 * np.eye(len(LAGS)) / spread**2
    better, scale, square = mean.copy(), np.full(y.size, spread), spread**2
    for t in range(most, y.size):
        x = errors[t - np.array(LAGS)]
        better[t] += weights @ x
        scale[t] = np.sqrt(square)
        missed = y[t] - better[t]
        gain = inverse @ x / (FORGETTING + x @ inverse @ x)
        weights = weights + gain * missed
        inverse = (inverse - np.outer(gain, x @ inverse)) / FORGETTING
        square = FORGETTING * square + (1.0 - FORGETTING) * missed**2
    return better, scale


def season(quick: bool) -> Iterator[Line | Remark]:
    """The default beside the same game whose expert was told the lags."""
    y, mean, spread = hourly(0, 1_500 if quick else 8_760)
    raw = around(mean, spread)
    best = pinball(played(around(*told(y, mean, spread)), y), y).mean()
    last = relative(last_known(y, np.arange(y.size) - 1, LEVELS), raw, y, LEVELS)
    loss = float(pinball(raw, y).mean())
    note = f"raw {loss / best:.3f}, last known outcome {last * loss / best:.3f}"
    stream = float(pinball(played(raw, y), y).mean() / best)
    case, what = "expert errs by hour and weekday", "pinball / told the lags"
    yield Line(case, f"{what}, stream", stream, SEASON_LIMIT, form=".3f", note=note)
    yield Line(case, f"{what}, frame", _in_a_frame(y, raw) / best, SEASON_LIMIT, form=".3f", note=note)


def _in_a_frame(y: Vector, raw: Vector) -> float:
    """The pinball loss of the same through a frame with hours, each issued an hour before."""
    names = [f"q{level:g}" for level in LEVELS]
    ds = pd.date_range("2025-01-01", periods=y.size, freq="h")
    times = pd.DataFrame({"ds": ds, "cutoff": ds - pd.Timedelta("1h"), "y": y})
    out = oc.recalibrate(times.join(pd.DataFrame(raw, columns=names)))
    return float(pinball(out[[f"orcast_{name}" for name in names]].to_numpy(np.float64), y).mean())


def gaps(quick: bool) -> Iterator[Line | Remark]:
    """A daily expert that errs by weekday, some rows of which are missing: steps of the calendar beside rows."""
    seeds, days = (2 if quick else 8), pd.date_range("2026-01-01", periods=120)
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    names = [f"q{level:g}" for level in levels]
    for share in (0.0, 0.1, 0.3):
        losses = np.zeros(3)
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            mean = rng.normal(0.0, 5.0, days.size)
            y = mean + 2.0 * rng.standard_normal(7)[np.arange(days.size) % 7] + rng.standard_normal(days.size)
            q = mean[:, None] + np.sqrt(5.0) * ndtri(levels)
            here = np.random.default_rng(seed).random(days.size) >= share
            here[:2] = True
            q, y = q[here], y[here]
            losses[0] += pinball(q, y, levels).mean()
            for i, ds in enumerate((days[here], days[: y.size])):
                table = pd.DataFrame({"ds": ds, "y": y}).join(pd.DataFrame(q, columns=names))
                out = oc.recalibrate(table)[[f"orcast_{name}" for name in names]].to_numpy(np.float64)
                losses[i + 1] += pinball(out, y, levels).mean()
        note = f"counted in rows {losses[2] / losses[0]:.3f}"
        yield Line(f"errs by weekday, {share:.0%} missing", "pinball / raw", losses[1] / losses[0],
                   form=".3f", note=note)  # fmt: skip


def two(quick: bool) -> Iterator[Line | Remark]:
    """One expert knows the middle, the other the spread; both are calibrated."""
    seeds, rounds = (1, 500) if quick else (3, 2_000)
    draws = [_two_experts(np.random.default_rng(seed), rounds) for seed in range(seeds)]
    losses = np.mean([_two_played(*draw) for draw in draws], axis=0)
    ours, middle, tails, middle_alone, tails_alone = losses / min(losses[1:3])
    by_level, one = _best_weights(*(np.concatenate(part) for part in zip(*draws, strict=True)))
    note = (
        f"middle {middle:.3f}, tails {tails:.3f}; recalibrated alone {middle_alone:.3f}, {tails_alone:.3f}; "
        f"best weights in hindsight by level {by_level:.3f}, for all levels {one:.3f}"
    )
    yield Line("two experts, middle and tails", "CRPS / best single", ours, TWO_LIMIT, form=".3f", note=note)


def _two_played(middle: Vector, tails: Vector, y: Vector) -> list[float]:
    """The CRPS of both together, of each, and of each recalibrated by itself."""
    recal = oc.Recalibrator()
    ours = np.empty_like(middle)
    for t in range(y.size):
        given = {"middle": oc.Quantiles(LEVELS, middle[t]), "tails": oc.Quantiles(LEVELS, tails[t])}
        ours[t] = recal.predict(experts=given).quantile(LEVELS)
        recal.update(y[t])
    return [crps_quantiles(q, y).mean() for q in (ours, middle, tails, played(middle, y), played(tails, y))]


def _two_experts(rng: np.random.Generator, rounds: int, signal: float = 1.2) -> tuple[Vector, Vector, Vector]:
    """The quantiles of one who knows the mean, of one who knows the spread, and outcomes."""
    mean, spread = rng.normal(0.0, signal, rounds), np.exp(rng.standard_normal(rounds))
    y = mean + spread * rng.standard_normal(rounds)
    grid = np.linspace(-100.0, 100.0, 40_001)
    spreads = np.exp(ndtri((np.arange(200) + 0.5) / 200))
    usual = np.interp(LEVELS, np.mean([ndtr(grid / s) for s in spreads], axis=0), grid)
    return mean[:, None] + usual, around(np.zeros(rounds), np.sqrt(signal**2 + spread**2)), y


def _best_weights(first: Vector, second: Vector, y: Vector) -> tuple[float, float]:
    """The loss of the best weights by level and of the best for all levels, as parts of the best single one's."""
    table = []
    for weight in np.linspace(0.0, 1.0, 21):
        d = y[:, None] - (weight * first + (1.0 - weight) * second)
        table.append(np.maximum(LEVELS * d, (LEVELS - 1.0) * d).mean(axis=0))
    losses = np.array(table)
    single = min(losses[0].mean(), losses[-1].mean())
    return float(losses.min(axis=0).mean() / single), float(losses.mean(axis=1).min() / single)
