"""Short weekly panels with four horizons: hub forecasters from a folder, and a strong ensemble that is made up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

import orcast as oc
from benchmarks.harm_rivals import chance_gap, gap, last_known, multiqt, relative
from benchmarks.results import Line, Remark, geometric_mean
from orcast.metrics import pinball

Vector = NDArray[np.float64]

WEEK = 7
MEASURED = (1, 4)
# By weeks ahead: pinball / raw, coverage gap, worst series, share of series better than raw.
LIMITS = {1: (0.92, 0.034, 1.15, 0.75), 4: (0.985, 0.058, 1.15, 0.55)}
ENSEMBLE_LIMIT = 1.005
# Offsets of a tracker of counts move at least by so much.
LEAST = 0.1
LEVELS = np.array([0.01, 0.025, *np.arange(1, 20) / 20, 0.975, 0.99])


@dataclass(frozen=True, eq=False)
class Panel:
    """Rows of a panel in the order of its series, and its forecasts at ``levels`` as a table."""

    name: str
    series: NDArray[np.str_]
    day: NDArray[np.int64]
    ahead: NDArray[np.int64]
    y: Vector
    q: Vector
    levels: Vector

    def only(self, rows: NDArray[np.bool_]) -> Panel:
        return Panel(
            self.name, self.series[rows], self.day[rows], self.ahead[rows], self.y[rows], self.q[rows], self.levels
        )

    def games(self, ahead: int) -> list[NDArray[np.int64]]:
        """The rows of each series so many weeks ahead."""
        rows = np.flatnonzero(self.ahead == ahead)
        return [rows[self.series[rows] == name] for name in np.unique(self.series[rows])]


@dataclass(frozen=True)
class PanelScore:
    """How good forecasts of many series were, beside the raw ones."""

    pinball: float
    gap: float
    worst: float
    better: float


def read(file: Path) -> Panel:
    """A team of the folder."""
    with np.load(file, allow_pickle=False) as arrays:
        count = np.diff(arrays["start"])
        return Panel(
            file.stem,
            np.repeat(arrays["geo"], count),
            arrays["day"].astype(np.int64),
            np.repeat(arrays["h"], count),
            arrays["y"].astype(np.float64),
            np.sort(arrays["q"].astype(np.float64), axis=1),
            arrays["levels"],
        )


def recalibrated(panel: Panel) -> Vector:
    """What the default makes of the whole panel in one frame with cutoffs."""
    names = [f"q{level:g}" for level in panel.levels]
    frame = pd.DataFrame(
        {"unique_id": panel.series, "ds": panel.day, "cutoff": panel.day - WEEK * panel.ahead, "y": panel.y}
    ).join(pd.DataFrame(panel.q, columns=names))
    out = oc.recalibrate(frame, low=0)
    return out[[f"orcast_{name}" for name in names]].to_numpy(np.float64)


def by_game(panel: Panel, ahead: int, method: Callable[[Vector, Vector], Vector]) -> Vector:
    """The forecasts of a method that plays each series by itself; nan at other horizons."""
    q = np.full_like(panel.q, np.nan)
    for rows in panel.games(ahead):
        q[rows] = method(panel.y[rows], panel.q[rows])
    return q


def last_outcome(panel: Panel, ahead: int) -> float:
    """Pinball of the last known outcome with its spread / raw, geometric mean over series."""
    found = []
    for rows in panel.games(ahead):
        q = last_known(panel.y[rows], np.arange(rows.size) - ahead, panel.levels, low=0.0)
        found.append(relative(q, panel.q[rows], panel.y[rows], panel.levels))
    return geometric_mean(value for value in found if np.isfinite(value))


def ratios(panel: Panel, q: Vector, ahead: int) -> Vector:
    """Pinball / raw of each series."""
    return np.array(
        [
            pinball(q[rows], panel.y[rows], panel.levels).mean()
            / pinball(panel.q[rows], panel.y[rows], panel.levels).mean()
            for rows in panel.games(ahead)
        ]
    )


def scored(panel: Panel, q: Vector, ahead: int) -> PanelScore:
    found = ratios(panel, q, ahead)
    gaps = [gap(q[rows], panel.y[rows], panel.levels) for rows in panel.games(ahead)]
    return PanelScore(geometric_mean(found), float(np.mean(gaps)), float(found.max()), float((found < 1.0).mean()))


def together(scores: list[PanelScore]) -> PanelScore:
    """Several panels as one number each."""
    return PanelScore(
        geometric_mean(score.pinball for score in scores),
        float(np.mean([score.gap for score in scores])),
        max(score.worst for score in scores),
        float(np.mean([score.better for score in scores])),
    )


def thinned(panel: Panel, every: int) -> Panel:
    return panel.only(np.isin(panel.series, np.unique(panel.series)[::every]))


def rival(panel: Panel, ahead: int) -> PanelScore:
    """MultiQT, a game a series."""
    q = by_game(panel, ahead, lambda y, raw: multiqt(y, raw, panel.levels, ahead - 1, least=LEAST))
    return scored(panel, q, ahead)


def short(folder: Path | None, quick: bool) -> Iterator[Line | Remark]:
    """Hub forecasters, four horizons in a frame, measured one and four weeks ahead."""
    files = [] if folder is None else sorted((folder / "short").glob("*.npz"))
    if not files:
        yield Remark("short: skipped, there is no folder of short panels")
        return
    panels = [thinned(read(file), 6 if quick else 1) for file in files]
    played = [recalibrated(panel) for panel in panels]
    for ahead in MEASURED:
        yield from short_lines(panels, played, ahead)
        if not quick:
            yield alone(panels, ahead)


def short_lines(panels: list[Panel], played: list[Vector], ahead: int) -> Iterator[Line | Remark]:
    teams = [scored(panel, q, ahead) for panel, q in zip(panels, played, strict=True)]
    raw = together([scored(panel, panel.q, ahead) for panel in panels])
    other = together([rival(panel, ahead) for panel in panels])
    last = geometric_mean(last_outcome(panel, ahead) for panel in panels)
    ours = together(teams)
    lengths = [rows.size for panel in panels for rows in panel.games(ahead)]
    chance = chance_gap(lengths, panels[0].levels)
    overlapping = chance_gap(lengths, panels[0].levels, ahead)
    case = f"short, {ahead} week{'s' if ahead > 1 else ''} ahead"
    limits = LIMITS[ahead]

    def note(field: str, form: str) -> str:
        each = ", ".join(f"{getattr(team, field):{form}}" for team in teams)
        return f"teams {each}"

    yield Line(case, "pinball / raw", ours.pinball, limits[0], form=".3f", note=note("pinball", ".3f"))
    beside = f"; chance {chance:.4f}, with overlapping errors {overlapping:.4f}"
    yield Line(case, "coverage gap", ours.gap, limits[1], note=note("gap", ".4f") + beside)
    yield Line(case, "worst series, pinball / raw", ours.worst, limits[2], form=".2f", note=note("worst", ".2f"))
    yield Line(case, "series better than raw", ours.better, limits[3], ">=", form=".0%", note=note("better", ".0%"))
    yield from beside_lines(case, {"as given": raw, "MultiQT": other})
    yield Line(case, "pinball / raw, last known outcome", last, form=".3f")


def beside_lines(case: str, scores: dict[str, PanelScore]) -> Iterator[Line]:
    """What others have, for tables."""
    for name, score in scores.items():
        yield Line(case, f"pinball / raw, {name}", score.pinball, form=".3f")
        yield Line(case, f"coverage gap, {name}", score.gap)
        yield Line(case, f"worst series, pinball / raw, {name}", score.worst, form=".2f")
        yield Line(case, f"series better than raw, {name}", score.better, form=".0%")


def alone(panels: list[Panel], ahead: int) -> Remark:
    """The same with the other horizons left out of the frame."""
    scores = []
    for panel in panels:
        part = panel.only(panel.ahead == ahead)
        scores.append(scored(part, recalibrated(part), ahead))
    ours = together(scores)
    return Remark(
        f"with this horizon alone in the frame: pinball / raw {ours.pinball:.3f}, gap {ours.gap:.4f}, "
        f"worst series {ours.worst:.2f}, better {ours.better:.0%}"
    )


def strong_ensemble(seed: int, series: int = 53, weeks: int = 90, horizons: int = 4) -> Panel:
    """An epidemic in many places, and an ensemble that is nearly as good as can be.

    Logarithms follow a common wave that is foreseen up to a tenth of its change, and walk by weekly shocks, half of
    whose variance is common, with Student's tails; the ensemble is normal in them, with the right variance times 1.1,
    so that its errors overlap as its horizons do.  Outcomes are counts.
    """
    rng = np.random.default_rng(seed)
    steps = weeks + horizons
    t = np.arange(steps)
    peaks, widths = rng.uniform(0, steps, 4), rng.uniform(5, 12, 4)
    wave = 2.0 * np.exp(-0.5 * ((t[:, None] - peaks) / widths) ** 2).sum(axis=1)
    spread, tails = 0.12, np.sqrt(3.0 / 5.0)  # the spread of Student's t with five degrees of freedom is 1 / tails
    shocks = rng.standard_t(5, (steps, 1)) + rng.standard_t(5, (steps, series))
    walk = np.cumsum(spread * tails * np.sqrt(0.5) * shocks, axis=0)
    mean = np.exp(np.minimum(rng.uniform(2.0, 5.0, series) + wave[:, None] + walk, 12.0))
    counts = rng.poisson(mean).astype(np.float64)
    parts = []
    for ahead in range(1, horizons + 1):
        issued = np.arange(horizons - ahead, steps - ahead)
        last = np.log(counts[issued] + 0.5)
        centre = last + 0.9 * (wave[issued + ahead] - wave[issued])[:, None]
        width = np.sqrt(1.1 * (ahead * spread**2 + 2.0 / (np.exp(last) + 1.0)))
        q = np.maximum(np.exp(centre[:, :, None] + width[:, :, None] * ndtri(LEVELS)) - 0.5, 0.0)
        parts.append((issued + ahead, np.full(issued.size, ahead), counts[issued + ahead], q))
    return _stacked(parts, series)


def _stacked(parts: list[tuple[NDArray[np.int64], NDArray[np.int64], Vector, Vector]], series: int) -> Panel:
    """The panel of parts, one a horizon, whose columns are series."""
    names = np.array([f"place {i:02d}" for i in range(series)])
    return Panel(
        "strong ensemble",
        np.concatenate([np.repeat(names, len(step)) for step, *_ in parts]),
        np.concatenate([np.tile(WEEK * step, series) for step, *_ in parts]),
        np.concatenate([np.tile(ahead, series) for _, ahead, *_ in parts]),
        np.concatenate([y.T.ravel() for *_, y, _ in parts]),
        np.concatenate([q.transpose(1, 0, 2).reshape(-1, LEVELS.size) for *_, q in parts]),
        LEVELS,
    )


def ensemble(quick: bool) -> Iterator[Line | Remark]:
    """A strong ensemble on a panel that moves together, which can only be harmed."""
    panels = [strong_ensemble(seed) for seed in range(1 if quick else 3)]
    played = [recalibrated(panel) for panel in panels]
    yield Remark(
        f"a strong ensemble, 53 series x 90 weeks x 4 horizons with common shocks, panels drawn: {len(panels)}"
    )
    for ahead in MEASURED:
        pairs = list(zip(panels, played, strict=True))
        ours = together([scored(panel, q, ahead) for panel, q in pairs])
        raw = together([scored(panel, panel.q, ahead) for panel in panels])
        other = rival(panels[0], ahead)
        last = geometric_mean(last_outcome(panel, ahead) for panel in panels)
        found = np.concatenate([ratios(panel, q, ahead) for panel, q in pairs])
        note = (
            f"better {ours.better:.0%}, worse {(found > 1.0).mean():.0%}, worst {ours.worst:.2f}; gap {ours.gap:.4f}, "
            f"raw {raw.gap:.4f}; MultiQT {other.pinball:.3f}, last known outcome {last:.3f}"
        )
        case = f"strong ensemble, {ahead} week{'s' if ahead > 1 else ''} ahead"
        yield Line(case, "pinball / raw", ours.pinball, ENSEMBLE_LIMIT, form=".3f", note=note)
