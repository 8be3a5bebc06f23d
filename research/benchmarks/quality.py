"""Quality of the default settings, beside the base forecast, the last value, the season before and the best rival."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ndtr, ndtri

import orcast as oc
from orcast.evaluate.metrics import LEVELS, brier, ece, pinball, qce
from research.benchmarks import made, yardstick
from research.benchmarks.lines import Line, Lines, Remark
from research.comparison.catalogue import hub_stream
from research.comparison.methods import BASE, METHODS, ORCAST
from research.comparison.runner import Model, run_stream
from research.comparison.scores import gap
from research.comparison.stream import Array, Stream, Whole
from research.experiments import data
from research.learners import Naive, Task
from research.output import geometric_mean, mean, optional

TITLE = "Quality: default settings"
RIVALS = ("ACI", "DtACI", "conformal PID", "MultiQT", "NexCP", "AgACI", "AcMCP", "laplace portfolio")
EVENT_RIVALS = ("online Platt", "online beta", "TOPS", "histogram binning")
LAST, SEASON = "last value", "season before"
ERRORS = 500  # errors that give the quantiles of a reference
RATIO = "pinball / base forecast's"
SHORT_LIMITS = {1: (0.86, 0.028, 1.10, 0.88), 4: (0.955, 0.055, 1.12, 0.68)}
PERFECT_LIMITS = {100: 0.0066, 1_000: 0.00285, 5_000: 0.00145}
QUICK_ROUNDS = 500

Score = Callable[[Stream, Array], float]


def measure(quick: bool = False) -> Lines:
    """All rows; those of the yardstick are left out without its folder, and limits hold for whole runs only."""
    for line in _measure(quick):
        yield replace(line, target=None) if quick and isinstance(line, Line) else line


def _measure(quick: bool) -> Lines:
    place = yardstick.folder()
    if place is None:
        yield Remark("yardstick: skipped, no folder is named by --yardstick or ORCAST_YARDSTICK")
    else:
        yield from _streams([first(each, quick) for each in yardstick.one_step(place)])
        yield from _multi([first(yardstick.multi(file), quick) for file in _files(place, "multi/*.npz")])
        yield from _panel(first(yardstick.panel(next(iter(_files(place, "panel/*.csv")))), quick))
        yield from _short(_files(place, "short/*.npz"), 12 if quick else 1)
    yield from _strong(quick)
    if place is not None:
        yield from _ensemble(yardstick.ensemble(next(iter(_files(place, "ensemble/*.csv")))))
    yield from _pairs(place, quick)
    yield from _bad_expert(quick)
    yield from _perfect(quick)
    yield from _narrow(quick)
    yield from _shipped(quick)
    if place is not None:
        yield from _events(yardstick.one_step(place, binary=True))


def _files(place: Path, pattern: str) -> list[Path]:
    found = sorted(place.glob(pattern))
    if not found:
        raise ValueError(f"expected {pattern} in the yardstick folder, got none")
    return found


def first(stream: Stream, quick: bool) -> Stream:
    """Return the stream, or about its first rounds if a quick run was asked for."""
    if not quick:
        return stream
    each = QUICK_ROUNDS if stream.horizon is None else 200
    last = np.unique(stream.issued)[:each][-1]
    rows = stream.issued <= last
    return selected(stream, rows if stream.series is None else rows & (stream.series % 10 == 0))


def selected(stream: Stream, rows: NDArray[np.bool_]) -> Stream:
    """Return the stream of some of its rows."""
    cut = {name: value[rows] for name in ("y", "issued", "known", "series", "horizon")
           if (value := getattr(stream, name)) is not None}  # fmt: skip
    return replace(stream, experts={name: q[rows] for name, q in stream.experts.items()}, **cut)


# --- forecasts of all methods for the same rows ---


def reference(stream: Stream, season: int) -> Array:
    """Value `season` steps before, or a multiple of it that is known, with quantiles of its own past errors.

    Rows without such a value have the base forecast.
    """
    out = stream.base.copy()
    series = np.zeros(stream.rows, np.int64) if stream.series is None else stream.series
    for one in np.unique(series):
        rows = np.flatnonzero(series == one)
        times, at = np.unique(stream.known[rows], return_index=True)
        y, seen = stream.y[rows[at]], np.searchsorted(times, stream.issued[rows], side="right")
        target = np.searchsorted(times, stream.known[rows])
        there = (target - -(-(target - seen + 1) // season) * season >= 0) & (seen > 1)
        if there.any():
            game = np.zeros(rows.size, np.int64) if stream.horizon is None else stream.horizon[rows]
            task = Task(y, seen[there], target[there], game[there], season, stream.levels)
            out[rows[there]] = Naive(period=season, empirical=True, window=ERRORS)(task)
    return np.clip(out, stream.low, stream.high)


@dataclass(frozen=True, eq=False)
class Compared:
    """Issued quantiles by method, for each of some streams."""

    streams: Sequence[Stream]
    issued: dict[str, list[Array]]

    @classmethod
    def of(
        cls,
        streams: Sequence[Stream],
        season: Callable[[Stream], int] = lambda stream: 1,
        ours: Callable[[Stream], Array] = lambda stream: _issued(ORCAST, stream),
        rivals: Iterable[str] = RIVALS,
    ) -> Compared:
        """Run orcast, the references and rivals."""
        found = {
            ORCAST: [ours(stream) for stream in streams],
            BASE: [stream.base for stream in streams],
            LAST: [reference(stream, 1) for stream in streams],
        }
        if any(season(stream) > 1 for stream in streams):
            found[SEASON] = [reference(stream, season(stream)) for stream in streams]
        return cls(streams, found | {name: [_issued(name, stream) for stream in streams] for name in rivals})

    def scores(self, score: Score, average: Callable[[Iterable[float]], float]) -> dict[str, float]:
        """Average score over streams, by method."""
        return {
            name: average([score(stream, q) for stream, q in zip(self.streams, issued, strict=True)])
            for name, issued in self.issued.items()
        }

    def line(
        self,
        case: str,
        what: str,
        score: Score,
        limit: float | None = None,
        *,
        average: Callable[[Iterable[float]], float] = mean,
        sense: str = "<=",
        form: str = ".3f",
        best: Callable[[float], float] = float,
        note: str = "",
    ) -> Line:
        """Score of orcast beside those of the references and of the rival whose score has the least `best`."""
        found = self.scores(score, average)
        value = found.pop(ORCAST)
        others = {name: found.pop(name) for name in (BASE, LAST, SEASON) if name in found}
        if found:
            name = min(found, key=lambda each: best(found[each]))
            others[f"best rival {name}"] = found[name]
        told = ", ".join(f"{name} {other:{form}}" for name, other in others.items())
        return Line(case, what, value, limit, sense, form, f"{told}; {note}" if note else told)


def _issued(name: str, stream: Stream) -> Array:
    """Quantiles of a method; orcast runs a panel as a frame."""
    run = METHODS[name].run(stream)
    if run is None:
        raise ValueError(f"expected a method for streams of kind {stream.kind}, got {name}")
    return run.issued


def own_recalibrators(stream: Stream) -> Array:
    """Quantiles of one recalibrator for each series, without a pool."""
    space = oc.HalfLine(0) if stream.low == 0.0 else oc.Line()
    run = run_stream(stream, lambda _, group: Model(oc.Recalibrator(space, max_pending=group.rows.size + 1)))
    assert run is not None
    return run.issued


# --- scores ---


def loss(stream: Stream, q: Array, rows: Whole | slice = slice(None)) -> float:
    """Mean pinball loss of some rows."""
    return float(pinball(q[rows], stream.y[rows], stream.levels).mean())


def ratio(stream: Stream, q: Array, rows: Whole | slice = slice(None)) -> float:
    """Pinball loss of some rows over that of the base forecast."""
    return loss(stream, q, rows) / loss(stream, stream.base, rows)


def by_horizon(ahead: int, score: Callable[..., float] = ratio) -> Score:
    """Score of the rows at one horizon."""

    def own(stream: Stream, q: Array) -> float:
        assert stream.horizon is not None
        return score(stream, q, np.flatnonzero(stream.horizon == ahead))

    return own


def by_group(average: Callable[[Array], float], *, series: bool = False) -> Score:
    """Average of the ratios over series and horizons, or over series with all their horizons."""

    def own(stream: Stream, q: Array) -> float:
        groups = stream.groups() if not series else replace(stream, horizon=None).groups()
        return average(np.array([ratio(stream, q, rows) for rows in groups]))

    return own


def cover90(stream: Stream, q: Array, rows: Whole | slice = slice(None)) -> float:
    """Share of outcomes in the 90% band."""
    low, high = (int(np.abs(stream.levels - level).argmin()) for level in (0.05, 0.95))
    y = stream.y[rows]
    return float(((q[rows, low] <= y) & (y <= q[rows, high])).mean())


def _share_worse(ratios: Array) -> float:
    return float((ratios > 1.0).mean())


def _off_90(cover: float) -> float:
    return abs(cover - 0.9)


# --- yardstick ---


def _streams(streams: list[Stream]) -> Lines:
    """One-step streams of quantities."""
    found = Compared.of(streams, lambda stream: 24 if "wind" in stream.name else 1)
    case = f"streams, {len(streams)}"
    each = ", ".join(f"{s.name.removeprefix('yardstick, ')} {ratio(s, q):.3f}"
                     for s, q in zip(streams, found.issued[ORCAST], strict=True))  # fmt: skip

    def error(stream: Stream, q: Array) -> float:
        return qce(q, stream.y, stream.levels, low=stream.low, high=stream.high)

    def rolling(stream: Stream, q: Array) -> float:
        return qce(q, stream.y, stream.levels, low=stream.low, high=stream.high, window=200)

    yield found.line(case, RATIO, ratio, 0.672, average=geometric_mean, note=each)
    yield found.line(case, "QCE", error, 0.0020, average=geometric_mean, form=".4f")
    yield found.line(case, "worst rolling-200 QCE", rolling, 0.20, average=geometric_mean)
    yield found.line(case, "worst stream", ratio, 1.00, average=max)
    yield from _coverage(found, case)


def _coverage(found: Compared, case: str) -> Lines:
    """Errors of the lower and upper ends of bands, mean over streams; ties in favour of the forecast."""
    for band in (0.5, 0.9, 0.98):
        ends = np.array([(1.0 - band) / 2.0, (1.0 + band) / 2.0])
        shares = {}
        for name in (ORCAST, BASE):
            rows = []
            for stream, q in zip(found.streams, found.issued[name], strict=True):
                at = [int(np.abs(stream.levels - end).argmin()) for end in ends]
                y = stream.y[:, None]
                rows.append(np.clip(ends, (q[:, at] > y).mean(axis=0), (q[:, at] >= y).mean(axis=0)))
            shares[name] = np.mean(rows, axis=0)
        low, high = shares[ORCAST]
        note = f"below {low:.4f}, above {1.0 - high:.4f}; base forecast holds {np.ptp(shares[BASE]):.4f}"
        error = float(np.abs(shares[ORCAST] - ends).max())
        yield Line(case, f"{band:.0%} band: error of a side", error, 0.005, note=note)


def _multi(streams: list[Stream]) -> Lines:
    """Overconfident forecasts at twelve horizons."""
    found = Compared.of(streams, lambda stream: 24 if "wind" in stream.name else 1)
    case = f"multi, {len(streams)} series, 12 horizons"
    yield found.line(case, RATIO, by_group(geometric_mean), 0.970, average=geometric_mean)
    for sense, limit in ((">=", 0.89), ("<=", 0.91)):
        yield found.line(case, "90% band at h = 12", by_horizon(12, cover90), limit, sense=sense, best=_off_90)
    yield found.line(case, "worst series and horizon", by_group(np.max), 1.00, average=max)


def _panel(stream: Stream) -> Lines:
    """A weekly panel as one frame."""
    found = Compared.of([stream], lambda stream: 52)
    for ahead, limit in enumerate((0.81, 0.83, 0.91, 0.97), 1):
        yield found.line(f"panel, horizon {ahead}", RATIO, by_horizon(ahead), limit)
    yield found.line("panel", "locations worse", by_group(_share_worse, series=True), 0.05, form=".0%")
    yield found.line("panel", "90% band holds", cover90, 0.87, sense=">=", best=_off_90)


def _short(files: list[Path], every: int) -> Lines:
    """Short series with late outcomes: one recalibrator for each series and horizon, and one frame of all."""
    whole = [hub_stream(str(file), every) for file in files]
    frames = [_issued(ORCAST, stream) for stream in whole]
    for ahead, limits in SHORT_LIMITS.items():
        rows = [np.isin(np.asarray(stream.horizon), ahead) for stream in whole]
        streams = [selected(stream, own) for stream, own in zip(whole, rows, strict=True)]
        found = Compared.of(streams, ours=own_recalibrators)
        framed = Compared(streams, found.issued | {ORCAST: [q[own] for q, own in zip(frames, rows, strict=True)]})
        for compared, how in ((found, "own"), (framed, "frame")):
            yield from _short_lines(compared, f"short, {ahead} week{'s' if ahead > 1 else ''} ahead, {how}", limits)


def _short_lines(found: Compared, case: str, limits: tuple[float, ...]) -> Lines:
    def gaps(stream: Stream, q: Array) -> float:
        return mean(gap(q[rows], stream.y[rows], stream.levels) for rows in stream.groups())

    better = by_group(lambda ratios: float((ratios < 1.0).mean()))
    yield found.line(case, RATIO, by_group(geometric_mean), limits[0], average=geometric_mean)
    yield found.line(case, "coverage gap", gaps, limits[1], form=".4f")
    yield found.line(case, "worst series", by_group(np.max), limits[2], average=max, form=".2f")
    yield found.line(case, "series better", better, limits[3], sense=">=", form=".0%", best=lambda share: -share)


def _ensemble(stream: Stream) -> Lines:
    """A weather ensemble in one frame, beside the rolling, censored EMOS of the yardstick and EMOS and IDR."""
    frame = optional("pandas").DataFrame(stream.members, columns=[f"ens{i}" for i in range(1, stream.levels.size + 1)])
    out = oc.recalibrate(frame.assign(obs=stream.y), y="obs", low=0.0)
    ours = np.asarray(out[[f"orcast_{name}" for name in frame]], dtype=np.float64)
    start = 100

    def crps(q: Array) -> float:
        return float(optional("scoringrules").crps_ensemble(stream.y, q)[start:].mean())

    usual = crps(censored_emos(stream, start))
    others = {name: crps(_issued(name, stream)) for name in ("EMOS", "IDR")}
    note = f"CRPS {crps(ours):.3f}, EMOS {usual:.3f}; members {crps(stream.base) / usual:.3f}, "
    note += ", ".join(f"rival {name} {value / usual:.3f}" for name, value in others.items())
    yield Line("ensemble", "CRPS / EMOS", crps(ours) / usual, 1.00, form=".3f", note=note)


def censored_emos(stream: Stream, start: int, every: int = 30, window: int = 500) -> Array:
    """Quantiles of max(0, N(a + b mean, exp(c + d log(sd + 0.1))^2)), by least pinball loss on past rows.

    It is refitted every 30 rows on the last 500, of which the newest is not known yet.
    """
    members = stream.base
    m, s = members.mean(axis=1), np.log(members.std(axis=1, ddof=1) + 0.1)
    z = ndtri(stream.levels)

    def quantiles(p: Array, rows: slice) -> Array:
        q = (p[0] + p[1] * m[rows])[:, None] + np.exp(p[2] + p[3] * s[rows])[:, None] * z
        return np.asarray(np.maximum(q, 0.0))

    out, fitted = members.copy(), np.array([0.0, 1.0, 0.0, 0.5])
    for k in range(start, stream.rows, every):
        past = slice(max(0, k - window), k - 1)

        def mean_loss(p: Array, past: slice = past) -> float:
            e = stream.y[past][:, None] - quantiles(p, past)
            return float(np.maximum(stream.levels * e, (stream.levels - 1.0) * e).mean())

        fitted = minimize(mean_loss, fitted, method="Nelder-Mead", options={"maxiter": 200}).x
        out[k : k + every] = quantiles(fitted, slice(k, k + every))
    return out


def _events(streams: list[Stream]) -> Lines:
    """Probabilities of events."""
    for stream in streams:
        found = {name: _issued(name, stream) for name in (ORCAST, BASE, *EVENT_RIVALS)}
        for what, score in (("ECE", ece), ("Brier score", lambda p, y: float(brier(p, y).mean()))):
            values = {name: score(p, stream.y) for name, p in found.items()}
            best = min(EVENT_RIVALS, key=lambda name: values[name])
            note = f"base forecast {values[BASE]:.4f}, best rival {best} {values[best]:.4f}"
            yield Line(stream.name.removeprefix("yardstick, "), what, values[ORCAST], note=note)


# --- made-up streams ---


def _strong(quick: bool) -> Lines:
    """A strong forecaster of many places with late, correlated outcomes."""
    seeds = range(2 if quick else 8)
    size = {"series": 12} if quick else {}
    streams = [made.strong_panel(seed, **size) for seed in seeds]
    # rivals are slow, and two draws show how they do
    found = Compared.of(streams, rivals=())
    beside = Compared.of(streams[: 1 if quick else 2], ours=lambda stream: stream.base)
    for ahead in range(1, made.HORIZONS + 1):
        score = by_horizon(ahead)
        each = [score(stream, q) for stream, q in zip(streams, found.issued[ORCAST], strict=True)]
        rivals = beside.scores(score, mean)
        best = min(RIVALS, key=lambda name: rivals[name])
        note = f"worst seed {max(each):.3f}; best rival of {len(beside.streams)} seeds {best} {rivals[best]:.3f}"
        yield found.line(f"strong panel, horizon {ahead}", RATIO, score, 1.005, note=note)
    worse = by_group(_share_worse, series=True)
    each = [worse(stream, q) for stream, q in zip(streams, found.issued[ORCAST], strict=True)]
    case = f"strong panel, {len(streams)} seeds"
    yield found.line(case, "series worse", worse, 0.35, form=".0%", note=f"worst seed {max(each):.0%}")
    yield found.line(case, "90% band holds", cover90, sense=">=")


def _pairs(place: Path | None, quick: bool) -> Lines:
    """Two experts of the same outcomes, against the better of two separate recalibrators."""
    stored = (("sunspot", "rls", "sgt"), ("wind22", "hat", "rls"))
    cases = [] if place is None else [(_together(place, *names), 1.000) for names in stored]
    cases += [(made.pair(seed, 1500 if quick else 3000), 1.005) for seed in range(1 if quick else 3)]
    for stream, limit in cases:
        given = first(stream, quick and place is not None)
        alone = {name: loss(given, _issued(ORCAST, replace(given, kind="one-step", experts={name: q})))
                 for name, q in given.experts.items()}  # fmt: skip
        least, both = min(alone.values()), loss(given, _issued(ORCAST, given))
        others = {name: loss(given, _issued(name, given)) / least for name in ("BOA by level", "equal weights")}
        raw = ", ".join(f"{name} {loss(given, q) / least:.3f} raw and {alone[name] / least:.3f} alone"
                        for name, q in given.experts.items())  # fmt: skip
        best = min(others, key=lambda name: others[name])
        note = f"{raw}; last value {loss(given, reference(given, 1)) / least:.3f}, best rival {best} {others[best]:.3f}"
        yield Line(f"experts, {given.name}", "both / better alone", both / least, limit, form=".3f", note=note)


def _together(place: Path, name: str, one: str, two: str) -> Stream:
    found = [next(s for s in yardstick.one_step(place) if s.name.endswith(f"{name}_{kind}")) for kind in (one, two)]
    rows = min(stream.rows for stream in found)
    experts = {kind: stream.base[:rows] for kind, stream in zip((one, two), found, strict=True)}
    cut = {key: getattr(found[0], key)[:rows] for key in ("y", "issued", "known")}
    return replace(found[0], name=name, kind="several experts", experts=experts, **cut)


def _bad_expert(quick: bool) -> Lines:
    """The value a week before as expert, 24 hours ahead; the value a day before is better."""
    streams = [made.load(seed, 2_400 if quick else 4_000) for seed in range(1 if quick else 3)]
    found = Compared.of(streams, rivals=RIVALS)
    # quantiles of all errors of the last 28 days, or of those at the same hour: the better of both
    days = [[_yesterday(stream, period) for period in (1, made.DAY)] for stream in streams]
    for what, rows, limit in (
        ("from round 500 to 2,000", slice(500, 2_000), 1.00),
        ("after a history of 2,000", slice(2_000, None), 0.97),
    ):
        least = [min(loss(stream, q, rows) for q in both) for stream, both in zip(streams, days, strict=True)]
        scores = {
            name: geometric_mean(loss(s, q, rows) / day for s, q, day in zip(streams, issued, least, strict=True))
            for name, issued in found.issued.items()
        }
        best = min(RIVALS, key=lambda name: scores[name])
        note = f"base forecast {scores[BASE]:.3f}, best rival {best} {scores[best]:.3f}, {len(streams)} seeds"
        yield Line(f"bad expert, {what}", "pinball / same hour yesterday", scores[ORCAST], limit, form=".3f", note=note)


def _yesterday(stream: Stream, period: int, days: int = 28) -> Array:
    """Value a day before with quantiles of its last errors: of `days` days at all hours, or at the same hour."""
    target = np.arange(stream.rows)
    there = target >= 2 * made.DAY
    task = Task(stream.y, target[there] - made.DAY + 1, target[there], target[there] % period, made.DAY, stream.levels)
    out = stream.base.copy()
    out[there] = Naive(period=made.DAY, empirical=True, window=days * made.DAY // period)(task)
    return out


# --- nothing to gain, little known ---


def _perfect(quick: bool) -> Lines:
    """Outcomes drawn from the base forecasts."""
    for rounds, horizons, seeds in ((100, (100,), 40 if quick else 200), (5_000, (1_000, 5_000), 2 if quick else 20)):
        ours, base = np.empty((seeds, rounds)), np.empty((seeds, rounds))
        for seed in range(seeds):
            stream = made.perfect(rounds, seed)
            recal = oc.Recalibrator(oc.Interval(-50, 50))
            ours[seed] = pinball(recal.run(stream.base, stream.y, levels=LEVELS), stream.y)
            base[seed] = pinball(stream.base, stream.y)
        for until in horizons:
            lost = (ours[:, :until] - base[:, :until]).sum(axis=1) / base[:, :until].sum() * seeds
            note = f"{seeds} seeds, standard error {lost.std() / np.sqrt(seeds):.2%}"
            case, limit = f"perfect expert, first {until:,}", PERFECT_LIMITS[until]
            yield Line(case, "pinball lost", float(lost.mean()), limit, form=".2%", note=note)


def _narrow(quick: bool) -> Lines:
    """Base forecasts with two thirds of the right spread: outcomes until the 90% band holds 87%."""
    seeds, rounds = (40, 250) if quick else (200, 400)
    shares = np.zeros(rounds)
    for seed in range(seeds):
        stream = made.perfect(rounds, seed, 2.0 / 3.0)
        q, mu = oc.Recalibrator().run(stream.base, stream.y, levels=LEVELS), stream.base[:, 49]
        shares += (ndtr(q[:, 94] - mu) - ndtr(q[:, 4] - mu)) / seeds
    smooth = np.convolve(shares, np.full(10, 0.1), mode="valid")
    reached = np.flatnonzero(smooth >= 0.87)
    note = ", ".join(f"{smooth[t]:.3f} after {t}" for t in (0, 25, 50, 100, 200))
    value = float(reached[0]) if reached.size else np.inf
    yield Line("band too narrow by a third", "outcomes until 90% holds 87%", value, 50.0, form=".0f", note=note)


# --- shipped series ---


def _shipped(quick: bool) -> Lines:
    """Both experts of the shipped series, with outcomes at once and in late batches."""
    streams = []
    for name in data.NAMES:
        for expert in oc.datasets.EXPERTS:
            made_by = oc.datasets.stream(data.best(name), expert)
            t = np.arange(len(made_by))
            streams.append(
                Stream(made_by.name, "one-step", LEVELS, {expert: made_by.quantile(LEVELS)}, made_by.y,
                       t, t + 1, made_by.low, made_by.high)
            )  # fmt: skip
    streams = [first(stream, quick) for stream in streams]
    found = Compared.of(streams, rivals=("DtACI", "laplace portfolio"))
    case = f"shipped, {len(streams)} streams"
    yield found.line(case, RATIO, ratio, average=geometric_mean)
    yield from _coverage(found, case)
    late = [replace(stream, known=(stream.issued // 50 + 3) * 50) for stream in streams]
    found = Compared.of(late, rivals=())
    case = "shipped, batches of 50, two late"
    yield found.line(case, RATIO, ratio, average=geometric_mean)
    yield found.line(case, "worst stream", ratio, 1.01, average=max)
