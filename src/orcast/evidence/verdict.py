"""Verdict in sentences: one that says what to do, then the reasons."""

from __future__ import annotations

import numpy as np

from orcast.evidence.accuracy import Difference, difference, loss, loss_name, recent_difference
from orcast.evidence.base import Evidence, outcomes_of
from orcast.evidence.blocks import TIMES, design_effect, frequencies, shared_times
from orcast.evidence.diagnostics import guarantee_check
from orcast.evidence.references import reference_scores
from orcast.evidence.statistics import (
    SURE,
    band,
    coverage,
    error,
    independent_rows,
    inside,
    interval_band,
    level_name,
    limit_of,
    main_share,
    main_shares,
    place_of,
    shares,
    tie_excess,
    width,
)
from orcast.evidence.tables import by_horizon, by_series

USE, AVOID, UNDECIDED = "use", "do not use", "not enough data"
# A smaller deviation of a frequency is not reported, however many outcomes there are.
NEGLIGIBLE = 0.005
# Faults are significant at 99%, since several are tested.
CLEAR, SIGMAS = 0.99, 2.576
# Accuracy counts as unchanged if the whole 95% interval of the change is below this.
UNCHANGED = 0.02
# Fewest outcomes of a series that is judged by itself.
OUTCOMES = 10
MISSING_TIMES = (
    "Add the issue times: cutoff= or horizon= as a column, issued_every= or lag= "
    "(issued_every=1 if each outcome is known before the next forecast)."
)


def verdict(evidence: Evidence) -> list[str]:
    """Sentences on the forecasts, the one that says what to do first.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=1000)
    >>> narrow, right = np.tile([-1.0, 0.0, 1.0], (1000, 1)), np.tile([-1.645, 0.0, 1.645], (1000, 1))
    >>> for line in verdict(Evidence.of(narrow, y, after=right, levels=[0.05, 0.5, 0.95], timed=True))[:2]:
    ...     print(line)
    Use the recalibrated forecasts: pinball loss 7.8% lower, 95% interval -9.3% to -6.0%.
    The 90% interval covered 68.4% of 1,000 outcomes, after recalibration 91.4% (88.1% to 91.8% by chance).
    """
    if not evidence.rows:
        return [headline(evidence), *_left_out(evidence)]
    return [
        headline(evidence),
        *([evidence.assumption] if evidence.assumption and (evidence.timed or evidence.after is None) else []),
        _coverage(evidence),
        *_calibration(evidence),
        *_sample_size(evidence),
        _accuracy(evidence),
        *_horizons(evidence),
        *_series(evidence),
        *_guarantee(evidence),
        *_left_out(evidence),
        *evidence.notes,
    ]


def headline(evidence: Evidence) -> str:
    """Sentence that says what to do.

    >>> headline(Evidence.of([[-1.0, 1.0]] * 40, np.zeros(40), levels=[0.25, 0.75]))
    'Do not use these forecasts as they are: the 50% interval is too wide. Recalibrate them.'
    """
    return _decide(evidence)[1]


def action(evidence: Evidence) -> str:
    """Decision of the verdict: "use", "do not use" or "not enough data".

    >>> action(Evidence.of([[-1.0, 1.0]] * 40, np.zeros(40), levels=[0.25, 0.75]))
    'do not use'
    """
    return _decide(evidence)[0]


# --- decision


def _decide(evidence: Evidence) -> tuple[str, str]:
    if not evidence.rows:
        return UNDECIDED, "Not enough data: no forecast has an outcome."
    times = shared_times(evidence)[1]
    if times < TIMES:
        many = f"{times} distinct time{'' if times == 1 else 's'}"
        return UNDECIDED, f"Not enough data: {_outcomes(evidence.rows)} of {many}, a verdict needs {TIMES}."
    if evidence.after is None:
        return _decide_base(evidence)
    found = difference(evidence)
    assert found is not None
    if not evidence.timed:
        return UNDECIDED, (
            f"Not enough data to decide, the issue times are missing: the {loss_name(evidence)} is {_up_to(found)} "
            f"if every outcome was known before the next forecast was issued. {MISSING_TIMES}"
        )
    if np.isnan(found.low):
        return UNDECIDED, f"Not enough data: {_outcomes(evidence.rows)} are too few to compare losses."
    return _decide_change(evidence, found)


def _decide_base(evidence: Evidence) -> tuple[str, str]:
    """Decision on forecasts that were not recalibrated."""
    beaten = _beaten(evidence, "before")
    if beaten:
        return AVOID, f"Do not use these forecasts: {beaten}."
    wrong = faults(evidence)
    if wrong:
        return AVOID, f"Do not use these forecasts as they are: {_and(wrong)}. Recalibrate them."
    few = f"{_outcomes(evidence.rows)} show no significant miscalibration"
    if _is_small(evidence):
        return UNDECIDED, f"Not enough data: {few}, but only a large one would show."
    return USE, f"Use these forecasts: {few}."


def _decide_change(evidence: Evidence, found: Difference) -> tuple[str, str]:
    """Decision on recalibrated forecasts whose issue times are known."""
    moved = f"{loss_name(evidence)} {_relative(found)}"
    beaten = _beaten(evidence, "after")
    if beaten:
        return AVOID, f"Do not use these forecasts: {beaten}."
    if found.clear and found.change > 0.0:
        return AVOID, f"Do not use the recalibrated forecasts: {moved}."
    harm = _harm(evidence)
    if harm and (evidence.horizon is None or len(harm) == len(by_horizon(evidence).labels)):
        return AVOID, f"Do not use the recalibrated forecasts: {_and(harm[:3])}."
    recent = recent_difference(evidence)
    if recent is not None and recent.clear and recent.relative > NEGLIGIBLE:
        return AVOID, (
            f"Do not use the recalibrated forecasts now: in the last quarter of the time {loss_name(evidence)} "
            f"{_relative(recent)}, over all of it {_relative(found)}."
        )
    use = "Use the recalibrated forecasts" + (f", except where they are {_and(harm[:3])}" if harm else "")
    before, after = faults(evidence, "before"), faults(evidence, "after")
    if found.clear:
        return USE, f"{use}: {moved}{' over all horizons' if harm else ''}."
    if before and (not after or error(evidence, "after") < 0.5 * error(evidence, "before")):
        repaired = "calibration is repaired" if not after else "calibration is better"
        return USE, f"{use}: {repaired}; {moved}, not significant."
    if max(-found.relative_low, found.relative_high) < UNCHANGED and not before:
        return AVOID, f"Do not use recalibration here, it is not needed: the base forecasts are calibrated; {moved}."
    return UNDECIDED, f"Not enough data: no significant difference; {moved}."


def _beaten(evidence: Evidence, side: str) -> str:
    """Best reference so far if it is significantly more accurate than a side, else empty; needs the issue times."""
    best = next(iter(reference_scores(evidence)), None)
    if best is None or not evidence.timed or not best.changes[side].clear or not best.gain(side) > NEGLIGIBLE:
        return ""
    gain = -best.loss / best.changes[side].after + 1.0
    whose = "theirs" if side == "before" else "theirs after recalibration"
    how = ", with the quantiles of its own errors," if evidence.kind == "quantiles" else ""
    return f"{best.name}{how} has a {loss_name(evidence)} {gain:.1%} lower than {whose}"


def _harm(evidence: Evidence) -> list[str]:
    """Horizons at which recalibration made the forecasts worse, in words."""
    table = by_horizon(evidence)
    if table.change is None:
        return []
    found = []
    for k in np.flatnonzero(table.change.harmed):
        where = "" if evidence.horizon is None else f" at horizon {table.labels[k]}"
        loss_change = f"{loss_name(evidence)} {table.change.relative[k]:+.1%}"
        many = int(table.change.series[k])
        counted = f"worse in {table.change.worse[k]:,} of {many:,} series" if many > 1 else "worse"
        found.append(f"{counted}{where} ({loss_change})")
    return found


# --- calibration


def _coverage(evidence: Evidence) -> str:
    """Coverage of the main interval, or the mean probability furthest from its frequency."""
    share, rows = main_share(evidence), evidence.rows
    if share is not None:
        low, high = (_percent(end, rows) for end in interval_band(evidence, share))
        seen = [_covered(evidence, share, side) for side in evidence.sides]
        what = f"The {level_name(share)} interval covered {seen[0]} of {_outcomes(rows)}"
        return f"{what}{_after(seen)} ({low} to {high} by chance)."
    if evidence.kind == "quantiles":
        at = int(np.abs(evidence.levels - 0.5).argmax())
        seen = [_percent(float(frequencies(evidence, side)[at]), rows) for side in evidence.sides]
        return (
            f"{seen[0]} of {_outcomes(rows)} were below the {level_name(evidence.levels[at])} quantile{_after(seen)}."
        )
    came = outcomes_of(evidence).mean(axis=0)
    means = np.stack([evidence.side(side).mean(axis=0) for side in evidence.sides])
    k = int(np.abs(means - came).max(axis=0).argmax())
    what = "The event" if evidence.kind == "binary" else repr(evidence.labels[k])
    seen = [_percent(float(p), rows) for p in means[:, k]]
    frequency = _percent(float(came[k]), rows)
    return f"{what} occurred in {frequency} of {_outcomes(rows)}; the mean probability was {seen[0]}{_after(seen)}."


def _covered(evidence: Evidence, share: float, side: str) -> str:
    """Coverage, and that without the ends of the interval if ties matter."""
    covered = _percent(coverage(evidence, share, side), evidence.rows)
    if tie_excess(evidence, share, side) <= NEGLIGIBLE:
        return covered
    strictly = float(inside(evidence, share, side, ends=False).mean())
    return f"{covered} ({_percent(strictly, evidence.rows)} strictly inside)"


def _calibration(evidence: Evidence) -> list[str]:
    """Significant faults of both sides, and the calibration error."""
    last = evidence.sides[-1]
    name = "QCE" if evidence.kind == "quantiles" else "ECE"
    errors = [f"{error(evidence, side):.2g}" for side in evidence.sides]
    limit = f"Calibration error ({name}) {errors[0]}{_after(errors)}; up to {limit_of(evidence, last):.2g} by chance."
    if evidence.after is None:
        return [limit]
    wrong = {side: _and(faults(evidence, side)) or "no significant fault" for side in evidence.sides}
    share = main_share(evidence)
    was, now = (0.0, 0.0) if share is None else (width(evidence, share, side) for side in evidence.sides)
    wider = f" The mean width changed by {now / was - 1.0:+.0%}." if was > 0.0 else ""
    return [f"Before: {wrong['before']}. After: {wrong['after']}.{wider}", limit]


def faults(evidence: Evidence, side: str = "before") -> list[str]:
    """Significant faults of the forecasts (99%); empty if there are none.

    >>> rng = np.random.default_rng(0)
    >>> narrow = np.tile([-1.0, 0.0, 1.0], (1000, 1))
    >>> faults(Evidence.of(narrow, rng.normal(size=1000), levels=[0.05, 0.5, 0.95]))
    ['the 90% interval is too narrow']
    """
    if not evidence.rows:
        return []
    found = _quantile_faults(evidence, side) if evidence.kind == "quantiles" else _probability_faults(evidence, side)
    if found:
        return found
    negligible = NEGLIGIBLE**2 * evidence.levels.size if evidence.kind == "quantiles" else NEGLIGIBLE
    judged = evidence.sides[-1] if evidence.kind == "quantiles" else side
    if error(evidence, side) <= max(limit_of(evidence, judged, CLEAR), negligible):
        return []
    return ["the quantiles are off" if evidence.kind == "quantiles" else "the probabilities are off"]


def _quantile_faults(evidence: Evidence, side: str) -> list[str]:
    """Intervals that are too narrow or too wide, and a median that is too low or too high."""
    found = []
    for share in main_shares(evidence):
        covered = coverage(evidence, share, side) - tie_excess(evidence, share, side)
        # both sides are judged by one chance band, that of the last side
        low, high = map(float, band(independent_rows(evidence, share, sure=CLEAR), share, CLEAR))
        if not min(low, share - NEGLIGIBLE) <= covered <= max(high, share + NEGLIGIBLE):
            found.append(f"the {level_name(share)} interval is too {'narrow' if covered < share else 'wide'}")
    middle = place_of(evidence, 0.5)
    if middle is not None:
        below = float(frequencies(evidence, side)[middle])
        effect = float(design_effect(evidence, evidence.sides[-1], sure=CLEAR)[middle])
        low, high = (float(end) for end in band(evidence.rows / effect, 0.5, CLEAR))
        if not min(low, 0.5 - NEGLIGIBLE) <= below <= max(high, 0.5 + NEGLIGIBLE):
            where, part = ("low", 1.0 - below) if below < 0.5 else ("high", below)
            side_of = "above" if below < 0.5 else "below"
            found.append(f"the forecasts are too {where} ({part:.0%} of the outcomes {side_of} the median)")
    return found


def _probability_faults(evidence: Evidence, side: str) -> list[str]:
    """Probabilities that are too high or too low on average, too extreme or too cautious."""
    p, came = evidence.side(side), outcomes_of(evidence)
    variance = p * (1.0 - p) * design_effect(evidence, side, sure=CLEAR)
    found = []
    for k, label in enumerate(evidence.labels):
        gap = float((came[:, k] - p[:, k]).sum())
        if abs(gap) > max(SIGMAS * float(np.sqrt(variance[:, k].sum())), NEGLIGIBLE * evidence.rows):
            what = "the probabilities are" if evidence.kind == "binary" else f"the probability of {label!r} is"
            far = f"{100.0 * abs(gap) / evidence.rows:.2g} percentage points"
            found.append(f"{what} too {'low' if gap > 0.0 else 'high'} by {far} on average")
    # covariance of the probabilities and their errors: negative if they are too extreme
    centred = p - p.mean(axis=0)
    slope, scale = float((centred * (came - p)).sum()), float((centred**2).sum())
    if abs(slope) > max(SIGMAS * float(np.sqrt((centred**2 * variance).sum())), 0.02 * scale) and scale > 0.0:
        found.append(f"the probabilities are too {'extreme' if slope < 0.0 else 'cautious'}")
    return found


# --- sample size, accuracy, series, guarantee


def effective_size(evidence: Evidence) -> float:
    """Effective sample size: the number of independent outcomes that say as much of the calibration.

    >>> effective_size(Evidence.of([[-1.0, 1.0]] * 100, np.zeros(100), levels=[0.05, 0.95]))
    100.0
    """
    share = main_share(evidence)
    if share is not None:
        return independent_rows(evidence, share)
    return float((evidence.rows / design_effect(evidence, evidence.sides[-1])).min()) if evidence.rows else 0.0


def _is_small(evidence: Evidence) -> bool:
    """True if sampling noise alone moves the widest interval's coverage by more than 20 points."""
    widest = shares(evidence)[-1] if shares(evidence) else None
    rows = evidence.rows if widest is None else independent_rows(evidence, widest)
    low, high = map(float, band(rows, 0.9 if widest is None else widest))
    return high - low > 0.2


def _sample_size(evidence: Evidence) -> list[str]:
    size = effective_size(evidence)
    if size > 0.8 * evidence.rows:
        return []
    return [
        f"Errors are correlated: the effective sample size is {max(size, 1.0):,.0f} of {evidence.rows:,}, "
        "and chance bands are that much wider."
    ]


def _accuracy(evidence: Evidence) -> str:
    """Mean losses of the forecasts, with that of the best reference beside them."""
    name = loss_name(evidence)
    found = difference(evidence)
    parts = [f"base forecasts {float(loss(evidence, 'before').mean()):.4g}"]
    if found is not None:
        change = _relative(found) if evidence.timed else _up_to(found)
        parts.append(f"recalibrated {found.after:.4g} ({change})")
    known = "" if evidence.timed else " (if known by then)"
    for best in reference_scores(evidence)[:1]:
        base, there = loss(evidence, "before").mean(), best.changes["before"].after
        where = f", in rows where base forecasts have {there:.4g}" if abs(there - base) > NEGLIGIBLE * base else ""
        parts.append(f"{best.name} {best.loss:.4g}{known}{where}")
    return f"{name[0].upper()}{name[1:]}: {', '.join(parts)}."


def _up_to(found: Difference) -> str:
    """Relative change in words, for forecasts whose issue times are unknown."""
    return f"up to {-found.relative:.1%} lower" if found.relative < 0.0 else "not lower"


def _relative(found: Difference) -> str:
    """Relative change in words, with its interval."""
    if np.isnan(found.relative):
        return f"went from {found.before:.4g} to {found.after:.4g}"
    moved = f"{abs(found.relative):.1%} {'lower' if found.relative <= 0 else 'higher'}"
    if np.isnan(found.relative_low):
        return moved
    return f"{moved}, 95% interval {found.relative_low:+.1%} to {found.relative_high:+.1%}"


def _horizons(evidence: Evidence) -> list[str]:
    """Horizons and series that became worse, counted."""
    change = by_horizon(evidence).change
    if change is None or (evidence.horizon is None and len(evidence.names) == 1):
        return []
    harm = _harm(evidence)
    if harm:
        return [f"The recalibrated forecasts are {', '.join(harm)}."]
    k = int(np.argmax(change.worse / np.maximum(change.series, 1)))
    if change.series[k] < 2:
        return ["No horizon became significantly worse."]
    if not change.worse[k]:
        return [f"None of {change.series[k]:,} series became worse at any horizon."]
    where = "" if evidence.horizon is None else f" (horizon {by_horizon(evidence).labels[k]})"
    return [
        f"Recalibration made the forecasts worse in at most {change.worse[k]:,} of {change.series[k]:,} series{where}."
    ]


def _series(evidence: Evidence) -> list[str]:
    """Number of series that are significantly miscalibrated."""
    table = by_series(evidence)
    enough = table.rows >= OUTCOMES
    count = int(enough.sum())
    if count < 2 or shared_times(evidence)[1] < TIMES:
        return []
    seen = [f"{int(table.outside(side)[enough].sum()):,}" for side in evidence.sides]
    which = "series" if enough.all() else f"series with {OUTCOMES} outcomes or more"
    chance = f"about {(1.0 - SURE) * count:.2g} by chance"
    return [f"{seen[0]} of {count:,} {which} are miscalibrated{_after(seen)} ({chance})."]


def _guarantee(evidence: Evidence) -> list[str]:
    found = guarantee_check(evidence)
    if found is None:
        return []
    size, bound = found.final
    held = "held in every round" if found.kept == found.rows else f"broken in {found.rows - found.kept:,} rounds"
    missed = "" if found.held in (None, 1.0) else f"; certificates held in {found.held:.1%} of the rounds"
    median = " (median of the series)" if len(evidence.names) > 1 else ""
    return [f"Guarantee: miscalibration {size:.4f}, bound {bound:.4f}{median}, {held}{missed}."]


def _left_out(evidence: Evidence) -> list[str]:
    """Rows that do not count, and quantiles that were sorted."""
    counts = {
        "with an outcome outside the bounds": evidence.outside,
        "without a forecast": evidence.missing,
        "without an outcome yet": evidence.pending,
    }
    left = [f"{count:,} {what}" for what, count in counts.items() if count]
    lines = [f"Rows left out: {', '.join(left)}."] if left else []
    if evidence.crossed:
        lines.append(f"Quantiles crossed in {evidence.crossed:,} of {evidence.rows:,} forecasts and were sorted.")
    return lines


# --- numbers as text


def _outcomes(count: int) -> str:
    return f"{count:,} outcome{'' if count == 1 else 's'}"


def _after(seen: list[str]) -> str:
    return f", after recalibration {seen[1]}" if len(seen) > 1 else ""


def _and(parts: list[str]) -> str:
    return " and ".join(([", ".join(parts[:-1])] if len(parts) > 1 else []) + parts[-1:])


def _percent(share: float, rows: int) -> str:
    return f"{share:.1%}" if rows >= 1000 else f"{share:.0%}"
