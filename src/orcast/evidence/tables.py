"""What is tabulated: series by series, and the scores of all together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from orcast import metrics
from orcast.evidence.accuracy import LEAST, difference, loss, loss_blocks, loss_name, loss_sums, resample
from orcast.evidence.base import Evidence, Grouping, Places, Vector, chunks, computed_once, outcomes_of, rows_of
from orcast.evidence.blocks import (
    calibration_blocks,
    indicator_sums,
    series_effect,
    student,
    student_by_steps,
    variance_by_steps,
)
from orcast.evidence.statistics import (
    SURE,
    band,
    bins_of,
    chance_limit,
    coverage,
    ends_of,
    error,
    half_normal_limit,
    inside,
    interval_band,
    level_name,
    limit_of,
    main_share,
    main_shares,
    width,
)


@dataclass(frozen=True, eq=False)
class SeriesTable:
    """The series of a panel, the worst first; each array has an entry a series, `*_after` is None in a check.

    `error` is as in `error`, `limit` what chance allows it (`SURE`), `outside` whether it is above.  `coverage`
    is that of the interval nearest to 90%, `share`; None for probabilities.
    """

    names: tuple[str, ...]
    rows: Vector
    share: float | None
    coverage_before: Vector | None
    coverage_after: Vector | None
    error_before: Vector
    error_after: Vector | None
    limit_before: Vector
    limit_after: Vector | None
    loss_before: Vector
    loss_after: Vector | None

    @property
    def outside_before(self) -> NDArray[np.bool_]:
        """Which series were outside what chance allows before."""
        return np.asarray(self.error_before > self.limit_before)

    @property
    def outside_after(self) -> NDArray[np.bool_] | None:
        """Which series are outside what chance allows after."""
        if self.error_after is None or self.limit_after is None:
            return None
        return np.asarray(self.error_after > self.limit_after)


@computed_once
def by_series(evidence: Evidence) -> SeriesTable:
    """Every series by itself, the one furthest above what chance allows first; those without an outcome left out.

    >>> table = by_series(Evidence.of([[0.0]] * 8, [1, -1] * 2 + [1] * 4, levels=[0.5], series=list("aaaabbbb")))
    >>> table.names, table.error_before
    (('b', 'a'), array([0.25, 0.  ]))
    """
    rows = rows_of(evidence)
    there = np.flatnonzero(rows > 0)
    columns: dict[str, Vector] = {}
    for side in evidence.sides:
        columns |= {f"{what}_{side}": values for what, values in _series_columns(evidence, side, there).items()}
    last = evidence.sides[-1]
    worst = columns[f"error_{last}"] / np.maximum(columns[f"limit_{last}"], 1e-300)
    order = np.argsort(-worst, kind="stable")
    names = [f"{what}_{side}" for what in ("coverage", "error", "limit", "loss") for side in ("before", "after")]
    return SeriesTable(
        names=tuple(evidence.names[i] for i in there[order]),
        rows=rows[there][order],
        share=main_share(evidence),
        **{name: columns[name][order] if name in columns else None for name in names},  # type: ignore[arg-type]
    )


def _series_columns(evidence: Evidence, side: str, there: Places) -> dict[str, Vector]:
    """Error, limit, loss and coverage of those series on one side."""
    rows = rows_of(evidence)
    count = rows[there]
    effect = series_effect(evidence, side)
    found = {"loss": np.bincount(evidence.series, loss(evidence, side), minlength=rows.size)[there] / count}
    if evidence.kind == "quantiles":
        hits = indicator_sums(evidence, side)[there] / count[:, None]
        found["error"] = ((hits - evidence.levels) ** 2).sum(axis=1)
        found["limit"] = chance_limit(evidence, count / effect)
        share = main_share(evidence)
        if share is not None:
            lower, upper = ends_of(evidence, share)
            found["coverage"] = hits[:, upper] - hits[:, lower]
        return found
    bins, scale = bins_of(evidence, side), count * len(evidence.labels)
    found["error"] = np.abs(bins.gap[there]).sum(axis=(1, 2)) / scale
    found["limit"] = half_normal_limit(effect * bins.variance[there].reshape(there.size, -1)) / scale
    return found


# --- groups


@dataclass(frozen=True, eq=False)
class GroupTable:
    """Groups of rows side by side, in their own order; each array has an entry a group, `*_after` is None in a check.

    `coverage` is that of the interval nearest to 90%, `share`, and `chance` between what it stays by chance (low and
    high).  `relative` is how the loss changed as a part of that before, with a 95% interval from `low` to `high`.
    `clear` is -1 where it fell beyond chance, 1 where it rose, else 0, all groups looked at together (Bonferroni).
    """

    name: str
    labels: tuple[str, ...]
    rows: Vector
    share: float | None
    coverage_before: Vector | None
    coverage_after: Vector | None
    chance: tuple[Vector, Vector] | None
    loss_before: Vector
    loss_after: Vector | None
    relative: Vector | None
    low: Vector | None
    high: Vector | None
    clear: Vector | None


@computed_once
def by_group(evidence: Evidence, grouping: Grouping) -> GroupTable:
    """The groups side by side; those without an outcome are left out.

    >>> groups = Grouping("h", np.array([0, 0, 2, 2]), ("1", "2", "3"))
    >>> by_group(Evidence.of([[0.0]] * 4, [1.0, -1.0, 2.0, 2.0], levels=[0.5]), groups).labels
    ('1', '3')
    """
    member = np.flatnonzero(grouping.codes >= 0)
    there, codes = np.unique(grouping.codes[member], return_inverse=True)
    whole = np.full(evidence.rows, -1, dtype=np.intp)
    whole[member] = codes
    count = int(there.size)
    rows = np.bincount(codes, minlength=count).astype(np.float64)

    def means(values: Vector) -> Vector:
        return np.asarray(np.bincount(codes, values[member], minlength=count) / rows)

    share = main_share(evidence)
    covered = {} if share is None else {side: means(inside(evidence, share, side)) for side in evidence.sides}
    losses = {side: means(loss(evidence, side)) for side in evidence.sides}
    return GroupTable(
        name=grouping.name,
        labels=tuple(grouping.labels[k] for k in there),
        rows=rows,
        share=share,
        coverage_before=covered.get("before"),
        coverage_after=covered.get("after"),
        chance=None if share is None else _group_bands(evidence, share, whole, count),
        loss_before=losses["before"],
        loss_after=losses.get("after"),
        **_group_changes(evidence, whole, count),
    )


def _group_bands(evidence: Evidence, share: float, codes: Places, count: int) -> tuple[Vector, Vector]:
    """Between what the coverage of each group stays by chance."""
    side = evidence.sides[-1]
    rows = np.bincount(codes[codes >= 0], minlength=count).astype(np.float64)
    blocks = calibration_blocks(evidence, side)
    if blocks is None or blocks.count < LEAST:
        return band(rows / (1.0 if blocks is None else 1.0 + evidence.overlap), share)
    there = np.flatnonzero(codes >= 0)
    places = blocks.of_row[there] * count + codes[there]
    hits, many = (
        np.bincount(places, weights, minlength=blocks.count * count).reshape(blocks.count, count)
        for weights in (inside(evidence, share, side)[there], None)
    )
    p = hits.sum(axis=0) / rows
    alone = np.maximum(rows * p * (1.0 - p), 1e-300)
    found = variance_by_steps(hits - many * p, blocks.alike) * student_by_steps(blocks.count, SURE) ** 2
    effect = np.where(p * (1.0 - p) > 0.0, np.maximum(found / alone, 1.0), 1.0)
    return band(rows / effect, share)


def _group_changes(evidence: Evidence, codes: Places, count: int) -> dict[str, Vector | None]:
    """How the loss of each group changed."""
    if evidence.after is None:
        return dict.fromkeys(("relative", "low", "high", "clear"))
    blocks = loss_blocks(evidence)
    sums = loss_sums(evidence, blocks, codes, count)
    ends = resample(sums, blocks.alike)
    before, after, _ = sums.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.where(before > 0.0, after / before - 1.0, np.nan)
        # the spread holds Student's factor for one group; several are looked at
        sure = 1.0 - (1.0 - SURE) / max(count, 1)
        many = max(blocks.count, 2)
        limit = ends.spread * ndtri(0.5 + sure / 2.0) * student(many, sure) / student(many, SURE)
        clear = np.where(np.abs(relative) > limit, np.sign(relative), 0.0)
    return {"relative": relative, "low": ends.relative_low, "high": ends.relative_high, "clear": clear}


# --- the numbers in one table


@dataclass(frozen=True)
class ScoreRow:
    """One line of the table of scores.

    `target` is what a calibrated forecaster shows, `chance` between what it stays; `low` and `high` are the 95%
    interval of after - before.  What does not apply is None.  `form` is "percent" or "number".
    """

    name: str
    before: float
    after: float | None = None
    target: float | None = None
    chance: tuple[float, float] | None = None
    low: float | None = None
    high: float | None = None
    form: str = "number"


def scores(evidence: Evidence) -> list[ScoreRow]:
    """Coverage and width of the intervals, calibration error and accuracy, before and after.

    >>> found = scores(Evidence.of([[0.0, 1.0]] * 4, [0.5, 0.7, 1.5, 0.1], levels=[0.25, 0.75]))
    >>> [(score.name, score.before) for score in found][:2]
    [('coverage of the 50% interval', 0.75), ('width of the 50% interval', 1.0)]
    """
    table = [row for share in sorted(main_shares(evidence), reverse=True) for row in _interval_rows(evidence, share)]
    if evidence.kind != "quantiles" and evidence.rows:
        happened = outcomes_of(evidence).mean(axis=0)
        averages = {side: evidence.side(side).mean(axis=0) for side in evidence.sides}
        for k, label in enumerate(evidence.labels):
            means = _sides(evidence, {side: values[k] for side, values in averages.items()}.__getitem__)
            what = "mean probability" if evidence.kind == "binary" else f"mean probability of {label!r}"
            table.append(ScoreRow(what, *means, float(happened[k]), form="percent"))
    errors = _sides(evidence, lambda side: error(evidence, side))
    name = "QCE" if evidence.kind == "quantiles" else "ECE"
    chance = (0.0, limit_of(evidence, evidence.sides[-1]))
    table.append(ScoreRow(f"calibration error ({name})", *errors, 0.0, chance))
    losses = _sides(evidence, lambda side: loss(evidence, side).mean() if evidence.rows else np.nan)
    found = difference(evidence)
    ends = (None, None) if found is None else (found.low, found.high)
    table.append(ScoreRow(loss_name(evidence), *losses, low=ends[0], high=ends[1]))
    return table


def _interval_rows(evidence: Evidence, share: float) -> list[ScoreRow]:
    low, high = interval_band(evidence, share)
    name = f"{level_name(share)} interval"
    covered = _sides(evidence, lambda side: coverage(evidence, share, side))
    widths = _sides(evidence, lambda side: width(evidence, share, side))
    return [
        ScoreRow(f"coverage of the {name}", *covered, share, (low, high), form="percent"),
        ScoreRow(f"width of the {name}", *widths),
    ]


def _sides(evidence: Evidence, measure: Callable[[str], float]) -> tuple[float, float | None]:
    """Before, and after if there is such a side."""
    values = [float(measure(side)) for side in evidence.sides]
    return values[0], values[1] if len(values) > 1 else None


# --- the last known outcome


@dataclass(frozen=True, eq=False)
class ReferenceScores:
    """The last known outcome with its own spread beside the forecasts, of which so many `rows` have one.

    The others count as they were given, so that all is said of the same outcomes.  `loss` and `coverage` (of the
    interval nearest to 90%, `share`) by "reference", "before" and "after".
    """

    rows: int
    loss: dict[str, float]
    share: float | None
    coverage: dict[str, float]


@computed_once
def reference_scores(evidence: Evidence) -> ReferenceScores | None:
    """What the last known outcome says at the same information; None if that is not known for half of the rows.

    >>> from orcast.evidence import Reference
    >>> walk = np.cumsum(np.random.default_rng(0).normal(size=300))
    >>> reference = Reference(np.append(np.nan, walk[:-1]), np.append(np.nan, np.ones(299)))
    >>> found = reference_scores(Evidence.of([[-9.0, 9.0]] * 300, walk, levels=[0.05, 0.95], reference=reference))
    >>> found.rows, 0.85 < found.coverage["reference"] < 0.95
    (299, True)
    """
    if evidence.reference is None or evidence.kind != "quantiles":
        return None
    there = np.flatnonzero(np.isfinite(evidence.reference.spread) & np.isfinite(evidence.reference.last))
    if 2 * there.size < max(evidence.rows, 1):
        return None
    share = main_share(evidence)
    own = loss(evidence, "before").copy()
    covered = None if share is None else inside(evidence, share, "before").astype(np.float64)
    losses, hits = _reference_losses(evidence, there, share)
    own[there] = losses
    means = {"reference": float(own.mean())} | {side: float(loss(evidence, side).mean()) for side in evidence.sides}
    coverage: dict[str, float] = {}
    if share is not None and covered is not None:
        covered[there] = hits
        coverage = {"reference": float(covered.mean())}
        coverage |= {side: float(inside(evidence, share, side).mean()) for side in evidence.sides}
    return ReferenceScores(int(there.size), means, share, coverage)


def _reference_losses(evidence: Evidence, there: Places, share: float | None) -> tuple[Vector, Vector]:
    """The pinball loss of the last known outcome, and whether the outcome was in its interval, for some rows."""
    assert evidence.reference is not None
    losses, covered = np.empty(there.size), np.zeros(there.size)
    ends = None if share is None else ends_of(evidence, share)
    steps = ndtri(evidence.levels)
    for chunk in chunks(there.size):
        rows = there[chunk]
        q = evidence.reference.last[rows, None] + evidence.reference.spread[rows, None] * steps
        np.clip(q, evidence.low[rows, None], evidence.high[rows, None], out=q)
        y = evidence.y[rows]
        losses[chunk] = metrics.pinball(q, y, evidence.levels)
        if ends is not None:
            covered[chunk] = (q[:, ends[0]] <= y) & (y <= q[:, ends[1]])
    return losses, covered
