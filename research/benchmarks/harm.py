"""Cost of recalibration where there is little to gain: perfect and strong forecasts, short histories, panels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

import orcast as oc
from orcast.metrics import LEVELS, pinball
from research.benchmarks.lines import Line, Lines, Remark
from research.benchmarks.streams import last_known, relative, yardstick_folder
from research.output import geometric_mean, optional
from research.rivals import MultiQT

pd = optional("pandas")
TITLE = "Harm: good forecasts, short histories, panels"
WEEK, MEASURED = 7, (1, 4)
HUB_LEVELS = np.array([0.01, 0.025, *np.arange(1, 20) / 20, 0.975, 0.99])
LEAST = 0.1  # smallest step of a tracker of counts
# by weeks ahead: pinball, coverage gap, worst series, share of series that are better
LIMITS = {1: (0.92, 0.034, 1.15, 0.75), 4: (0.985, 0.058, 1.15, 0.55)}
PERFECT_LIMITS = {100: 0.007, 1_000: 0.003, 5_000: 0.0015}

Vector = NDArray[np.float64]


def measure(quick: bool = False) -> Lines:
    """Perfect and narrow base forecasts, a strong simulated ensemble, and short panels of the yardstick."""
    yield from _perfect(quick)
    yield from _narrow(quick)
    panels = [strong_ensemble(seed) for seed in range(1 if quick else 3)]
    yield Remark(f"strong ensemble: 53 series x 90 weeks x 4 horizons with common shocks, {len(panels)} draws")
    yield from _panels("strong ensemble", panels, {1: (1.005,), 4: (1.005,)})
    folder = yardstick_folder()
    files = [] if folder is None else sorted((folder / "short").glob("*.npz"))
    if files:
        short = [read_panel(file) for file in files]
        yield from _panels("short", [thinned(panel, 6) for panel in short] if quick else short, LIMITS)
    else:
        yield Remark("short: skipped, no yardstick folder with short panels is named")


# --- simulated base forecasts ---


def _around(mean: Vector, spread: float = 1.0) -> Vector:
    return np.asarray(mean[:, None] + spread * ndtri(LEVELS))


def _perfect(quick: bool) -> Lines:
    """Outcomes drawn from the base forecasts."""
    for rounds, horizons, seeds in ((100, (100,), 40 if quick else 200), (5_000, (1_000, 5_000), 2 if quick else 20)):
        ours, base = np.empty((seeds, rounds)), np.empty((seeds, rounds))
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            mu = rng.normal(0.0, 5.0, rounds)
            y, q = mu + rng.standard_normal(rounds), _around(mu)
            ours[seed] = pinball(oc.Recalibrator(oc.Interval(-50, 50)).run(q, y, levels=LEVELS), y)
            base[seed] = pinball(q, y)
        for first in horizons:
            lost = (ours[:, :first] - base[:, :first]).sum(axis=1) / base[:, :first].sum() * seeds
            note = f"{seeds} seeds, standard error {lost.std() / np.sqrt(seeds):.2%}"
            case, limit = f"perfect forecast, first {first:,}", PERFECT_LIMITS[first]
            yield Line(case, "pinball lost", float(lost.mean()), limit, form=".2%", note=note)


def _narrow(quick: bool) -> Lines:
    """Base forecasts with two thirds of the right spread: outcomes until the 90% band holds 87%."""
    seeds, rounds = (40, 250) if quick else (200, 400)
    shares = np.zeros(rounds)
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        mu = rng.normal(0.0, 5.0, rounds)
        y = mu + rng.standard_normal(rounds)
        q = oc.Recalibrator().run(_around(mu, 2.0 / 3.0), y, levels=LEVELS)
        shares += (ndtr(q[:, 94] - mu) - ndtr(q[:, 4] - mu)) / seeds
    smooth = np.convolve(shares, np.full(10, 0.1), mode="valid")
    reached = np.flatnonzero(smooth >= 0.87)
    note = ", ".join(f"{smooth[t]:.3f} after {t}" for t in (0, 25, 50, 100, 200))
    value = float(reached[0]) if reached.size else np.inf
    yield Line("band too narrow by a third", "outcomes until 90% holds 87%", value, 50.0, form=".0f", note=note)


# --- panels ---


@dataclass(frozen=True, eq=False)
class Panel:
    """Rows of a panel in the order of its series; forecasts are quantiles at `levels`."""

    series: NDArray[np.str_]
    day: NDArray[np.int64]
    ahead: NDArray[np.int64]
    y: Vector
    q: Vector
    levels: Vector

    def games(self, ahead: int) -> list[NDArray[np.int64]]:
        """Rows of each series at a horizon."""
        rows = np.flatnonzero(self.ahead == ahead)
        return [rows[self.series[rows] == name] for name in np.unique(self.series[rows])]


def thinned(panel: Panel, every: int) -> Panel:
    """Every so many series of a panel."""
    rows = np.isin(panel.series, np.unique(panel.series)[::every])
    return Panel(panel.series[rows], panel.day[rows], panel.ahead[rows], panel.y[rows], panel.q[rows], panel.levels)


def read_panel(file: Path) -> Panel:
    """Read a panel of a forecast hub."""
    with np.load(file, allow_pickle=False) as arrays:
        count = np.diff(arrays["start"])
        return Panel(
            np.repeat(arrays["geo"], count),
            arrays["day"].astype(np.int64),
            np.repeat(arrays["h"], count),
            arrays["y"].astype(np.float64),
            np.sort(arrays["q"].astype(np.float64), axis=1),
            arrays["levels"],
        )


def recalibrated(panel: Panel) -> Vector:
    """Quantiles of the default for the whole panel, in one frame with cutoffs."""
    names = [f"q{level:g}" for level in panel.levels]
    frame = pd.DataFrame(
        {"unique_id": panel.series, "ds": panel.day, "cutoff": panel.day - WEEK * panel.ahead, "y": panel.y}
    ).join(pd.DataFrame(panel.q, columns=names))
    out = oc.recalibrate(frame, low=0)[[f"orcast_{name}" for name in names]]
    return np.asarray(out, dtype=np.float64)


def multiqt(panel: Panel, ahead: int) -> Vector:
    """Quantiles of MultiQT for each series; nan at other horizons."""
    found = np.full_like(panel.q, np.nan)
    for rows in panel.games(ahead):
        y, raw = panel.y[rows], panel.q[rows]
        method = MultiQT(0.0, 10.0 * (raw.max() + y.max() + 1.0), levels=panel.levels, least=LEAST)
        for t, row in enumerate(raw):
            found[rows[t]] = method.predict(oc.Quantiles(panel.levels, row), id=t).quantile(panel.levels)
            if t >= ahead - 1:
                method.update(y[t - ahead + 1], id=t - ahead + 1)
    return found


Scores = tuple[float, float, float, float]  # pinball / base, coverage gap, worst series, share of better series


def _scores(panels: list[Panel], forecasts: list[Vector], ahead: int) -> Scores:
    """Means over panels (pinball: geometric, worst: maximum)."""
    rows = []
    for panel, q in zip(panels, forecasts, strict=True):
        games = panel.games(ahead)
        ratios = np.array([relative(q[own], panel.q[own], panel.y[own], panel.levels) for own in games])
        gap = float(np.mean([_gap(q[own], panel.y[own], panel.levels) for own in games]))
        rows.append((geometric_mean(ratios), gap, float(ratios.max()), float((ratios < 1.0).mean())))
    loss, gaps, worst, better = zip(*rows, strict=True)
    return geometric_mean(loss), float(np.mean(gaps)), max(worst), float(np.mean(better))


def _gap(q: Vector, y: Vector, levels: Vector) -> float:
    """Mean distance of coverage from its level, ties in favour of the forecast."""
    at_most, below = (q >= y[:, None]).mean(axis=0), (q > y[:, None]).mean(axis=0)
    return float(np.abs(np.clip(levels, below, at_most) - levels).mean())


def _panels(name: str, panels: list[Panel], limits: Mapping[int, tuple[float, ...]]) -> Lines:
    ours = [recalibrated(panel) for panel in panels]
    for ahead in MEASURED:
        case = f"{name}, {ahead} week{'s' if ahead > 1 else ''} ahead"
        found = {
            "ours": _scores(panels, ours, ahead),
            "base forecast": _scores(panels, [panel.q for panel in panels], ahead),
        }
        found["MultiQT"] = _scores(panels, [multiqt(panel, ahead) for panel in panels], ahead)
        last = [
            relative(last_known(p.y[own], np.arange(own.size) - ahead, p.levels, 0.0), p.q[own], p.y[own], p.levels)
            for p in panels
            for own in p.games(ahead)
        ]
        named = ("pinball / base forecast's", "coverage gap", "worst series, pinball", "series better")
        for i, (what, form) in enumerate(zip(named, (".3f", ".4f", ".2f", ".0%"), strict=True)):
            others = ", ".join(f"{who} {scores[i]:{form}}" for who, scores in found.items() if who != "ours")
            if i == 0:
                others += f", last known outcome {geometric_mean(v for v in last if np.isfinite(v)):.3f}"
            target = limits[ahead][i] if i < len(limits[ahead]) else None
            yield Line(case, what, found["ours"][i], target, ">=" if i == 3 else "<=", form, others)


def strong_ensemble(seed: int, series: int = 53, weeks: int = 90, horizons: int = 4) -> Panel:
    """Counts of an epidemic in many places, and an ensemble that is nearly as good as possible.

    Logarithms follow a common wave that is foreseen up to a tenth of its change, and walk by weekly shocks with
    Student's tails, half of whose variance is common. The ensemble is normal in them, with 1.1 times the variance.
    """
    rng = np.random.default_rng(seed)
    steps = weeks + horizons
    t = np.arange(steps)
    peaks, widths = rng.uniform(0, steps, 4), rng.uniform(5, 12, 4)
    wave = 2.0 * np.exp(-0.5 * ((t[:, None] - peaks) / widths) ** 2).sum(axis=1)
    spread, tails = 0.12, np.sqrt(3.0 / 5.0)  # the deviation of Student's t with five degrees of freedom is 1 / tails
    shocks = rng.standard_t(5, (steps, 1)) + rng.standard_t(5, (steps, series))
    walk = np.cumsum(spread * tails * np.sqrt(0.5) * shocks, axis=0)
    mean = np.exp(np.minimum(rng.uniform(2.0, 5.0, series) + wave[:, None] + walk, 12.0))
    counts = rng.poisson(mean).astype(np.float64)
    names = np.array([f"place {i:02d}" for i in range(series)])
    parts = []
    for ahead in range(1, horizons + 1):
        issued = np.arange(horizons - ahead, steps - ahead)
        last = np.log(counts[issued] + 0.5)
        centre = last + 0.9 * (wave[issued + ahead] - wave[issued])[:, None]
        width = np.sqrt(1.1 * (ahead * spread**2 + 2.0 / (np.exp(last) + 1.0)))
        q = np.maximum(np.exp(centre[:, :, None] + width[:, :, None] * ndtri(HUB_LEVELS)) - 0.5, 0.0)
        parts.append(
            (
                np.repeat(names, issued.size),
                np.tile(WEEK * (issued + ahead), series),
                np.full(issued.size * series, ahead),
                counts[issued + ahead].T.ravel(),
                q.transpose(1, 0, 2).reshape(-1, HUB_LEVELS.size),
            )
        )
    series_of, day, horizon, y, q = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Panel(series_of, day, horizon, y, q, HUB_LEVELS)
