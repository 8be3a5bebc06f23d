"""Verdict in sentences: one that says what to do, then the reasons; and the numbers behind it as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import bdtr

from orcast.evaluate.calibration import (
    BINS,
    band,
    coverage,
    error,
    independent_rows,
    inside,
    interval_band,
    level_name,
    main_share,
    main_shares,
    place_of,
    reliability,
    tie_excess,
    width,
)
from orcast.evaluate.dependence import TIMES, design_effect, frequencies, shared_times
from orcast.evaluate.evaluation import Evaluation, outcomes_of
from orcast.evaluate.losses import Difference, difference, loss, loss_name
from orcast.evaluate.monitoring import alarms, too_late
from orcast.evaluate.references import best_reference
from orcast.evaluate.tables import by_horizon, by_series
from orcast.monitors import ALPHA

USE, AVOID, UNDECIDED = "use", "do not use", "not enough data"
# A smaller deviation of a frequency is not reported, however many outcomes there are.
NEGLIGIBLE = 0.005
# Faults are significant at 99%, since several are tested.
CLEAR, SIGMAS = 0.99, 2.576
# Accuracy counts as unchanged if the whole 95% interval of the change is below this.
UNCHANGED = 0.02
# Rounding allowed in a guarantee.
ROUNDING = 1e-9
# Series that are named in a sentence.
MOST_NAMED = 5


def verdict(evaluation: Evaluation) -> list[str]:
    """Sentences on the forecasts, the one that says what to do first.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=1000)
    >>> narrow, right = np.tile([-1.0, 0.0, 1.0], (1000, 1)), np.tile([-1.645, 0.0, 1.645], (1000, 1))
    >>> verdict(Evaluation.of(narrow, y, after=right, levels=[0.05, 0.5, 0.95], timed=True))[1]
    'The 90% interval covered 68.4% of 1,000 outcomes, after recalibration 91.4% (88.1% to 91.8% by chance).'
    """
    first, *found = (decide(evaluation)[1], *reasons(evaluation))
    heading, texts = alarm_texts(evaluation)
    return list(filter(None, (first, *found[:2], f"{heading}: {'. '.join(texts)}." if texts else "", *found[2:])))


def reasons(evaluation: Evaluation) -> list[str]:
    """Sentences behind the decision, but for those on alarms; some may be empty."""
    every = (_coverage, _calibration, _sample_size, _accuracy, _reference, _guarantee)
    return [*([reason(evaluation) for reason in every] if evaluation.rows else []), _left_out(evaluation)]


def named_alarms(evaluation: Evaluation) -> list[tuple[str, Any]]:
    """Sides and alarms of the series that are named, the base forecasts first, then the worst first."""
    sides = evaluation.sides if evaluation.rows else ()
    return [(side, each) for side in sides for each in alarms(evaluation, side) if each.alarm]


def alarm_texts(evaluation: Evaluation) -> tuple[str, list[str]]:
    """Heading and texts of the alarms on all sides, or the reason why none is to be expected."""
    named, several = named_alarms(evaluation), len(evaluation.names) > 1
    if not named:
        late = too_late(alarms(evaluation, evaluation.sides[-1])) if evaluation.rows else ""
        return "Alarms", [late] if late else []
    count, plural = len({each.name for _, each in named}), "s" if len(named) > 1 else ""
    share = f"share of false ones{' on each side' if len(evaluation.sides) > 1 else ''}: at most {ALPHA:.0%}"
    which = f" on {count:,} of {len(evaluation.names):,} series (expected {share})"
    texts = []
    for side, alarm in named:
        parts = [{"before": "base forecast", "after": "recalibrated"}[side]] if len(evaluation.sides) > 1 else []
        texts.append(": ".join([*parts, *([alarm.name] if several else []), alarm.text]))
    return f"Alarm{plural}{which if several else ''}", _first(texts)


def summary(evaluation: Evaluation) -> dict[str, Any]:
    """Verdict and its numbers as plain data; None stands for numbers that cannot be computed.

    Examples
    --------
    >>> found = summary(Evaluation.of([[-1.0, 1.0]] * 40, np.zeros(40), levels=[0.25, 0.75]))
    >>> found["action"], found["faults"], found["coverage"]["before"]
    ('do not use', {'before': ['the 50% interval is too wide']}, 1.0)
    """
    sides, change, table = evaluation.sides, difference(evaluation), by_horizon(evaluation)
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    found: dict[str, Any] = {
        "model": evaluation.model,
        "action": decide(evaluation)[0],
        "verdict": verdict(evaluation),
        "outcomes": evaluation.rows,
        "series": len(evaluation.names),
        "effective_size": effective_size(evaluation),
        "issue_times_known": evaluation.timed,
        "left_out": {name: getattr(evaluation, name) for name in ("outside", "missing", "pending")},
        "faults": {side: faults(evaluation, side) for side in sides},
        "alarms": {side: [each.to_plain() for each in alarms(evaluation, side) if each.text] for side in sides},
        "calibration_error": {side: error(evaluation, side) for side in sides},
        "loss": {"name": loss_name(evaluation)} | {side: _mean(loss(evaluation, side)) for side in sides},
        "horizons": [dict(zip(table, row, strict=True)) for row in rows],
    }
    if (share := main_share(evaluation.levels)) is not None:
        covered = {side: coverage(evaluation, share, side) for side in sides}
        found["coverage"] = {"nominal": share} | covered | {"chance": interval_band(evaluation, share)}
    if change is not None:
        ends = [change.relative_low, change.relative_high]
        found["change"] = {"relative": change.relative, "interval": ends, "significant": change.clear}
    if (best := best_reference(evaluation)) is not None:
        losses = {side: best.changes[side].after for side in sides}
        found["reference"] = {"name": best.name, "loss": best.loss, "rows": best.rows} | losses
    return {name: _plain(value) for name, value in found.items()}


def _mean(values: Any) -> float:
    return float(values.mean()) if values.size else float("nan")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def decide(evaluation: Evaluation) -> tuple[str, str]:
    """Decision, "use", "do not use" or "not enough data", and the sentence that says what to do."""
    if not evaluation.rows:
        return UNDECIDED, "Not enough data: no forecast has an outcome."
    times, size = shared_times(evaluation)[1], _outcomes(evaluation.rows)
    if times < TIMES:
        many = f"{times} distinct time{'' if times == 1 else 's'}"
        return UNDECIDED, f"Not enough data: {size} of {many}, a verdict needs {TIMES}."
    beaten, found = _beaten(evaluation), difference(evaluation)
    if beaten and (found is None or not np.isnan(found.relative_low)):
        return AVOID, f"Do not use these forecasts: {beaten}."
    if found is None:
        return _decide_base(evaluation)
    if not evaluation.timed:
        return UNDECIDED, (
            f"Cannot decide without issue times: the {loss_name(evaluation)} is {_up_to(found)} "
            "if each outcome was known before the next forecast was issued. If so, pass issued_every=1. If not, name "
            "the column of issue times (cutoff=) or the rows issued together (issued_every=)."
        )
    if np.isnan(found.relative_low):
        return UNDECIDED, f"Not enough data: {size} are too few to compare losses."
    return _decide_change(evaluation, found)


def _decide_base(evaluation: Evaluation) -> tuple[str, str]:
    """Decision on forecasts that were not recalibrated."""
    wrong = faults(evaluation)
    if wrong:
        return AVOID, f"Do not use these forecasts as they are: {_and(wrong)}. Recalibrate them."
    few = f"{_outcomes(evaluation.rows)} show no significant miscalibration"
    low, high = band(effective_size(evaluation), main_share(evaluation.levels) or 0.9)
    if high - low > 0.2:
        return UNDECIDED, f"Not enough data: {few}, but only a large one would show."
    if far := _far_series(evaluation):
        return UNDECIDED, f"Not enough data on each series: together {few}, but {far}, and alarms have no power."
    return USE, f"Use these forecasts: {few}."


def _decide_change(evaluation: Evaluation, found: Difference) -> tuple[str, str]:
    """Decision on recalibrated forecasts whose issue times are known."""
    best, moved = best_reference(evaluation), f"{loss_name(evaluation)} {_relative(found)}"
    if best is not None:
        moved += f", {_lower(best.changes['after'].relative)} than the best reference, {best.name}"
    harm = _harm(evaluation)
    shown = _few(harm)
    if found.clear and found.relative > 0.0:
        return AVOID, f"Do not use the recalibrated forecasts: {moved}."
    if harm and 2 * len(harm) > len(by_horizon(evaluation)["horizon"]):
        return AVOID, f"Do not use the recalibrated forecasts: {shown}."
    use = "Use the recalibrated forecasts" + (f", except where they are {shown}" if harm else "")
    before, after = faults(evaluation, "before"), faults(evaluation, "after")
    if found.clear:
        return USE, f"{use}: {'over all horizons ' if harm else ''}{moved}."
    if before and (not after or error(evaluation, "after") < 0.5 * error(evaluation, "before")):
        repaired = "calibration is repaired" if not after else "calibration is better"
        return USE, f"{use}: {repaired}; no significant change of accuracy, {moved}."
    if max(-found.relative_low, found.relative_high) < UNCHANGED and not before:
        return AVOID, f"Do not use recalibration here, it is not needed: the base forecasts are calibrated; {moved}."
    return UNDECIDED, f"Not enough data: no significant difference; {moved}."


def _beaten(evaluation: Evaluation) -> str:
    """Best reference if it is significantly more accurate than the last side; needs the issue times."""
    side = evaluation.sides[-1]
    best = best_reference(evaluation)
    change = None if best is None or not evaluation.timed else best.changes[side]
    if best is None or change is None or not change.clear or not change.relative > NEGLIGIBLE:
        return ""
    gain = 1.0 - best.loss / change.after
    whose = "theirs" if side == "before" else "theirs after recalibration"
    return f"the best reference, {best.name}, has a {loss_name(evaluation)} {gain:.1%} lower than {whose}"


def _harm(evaluation: Evaluation) -> list[str]:
    """Horizons at which the loss rose significantly, on average or in a majority of the series, in words."""
    table, found = by_horizon(evaluation), []
    low, worse, series = table["change_low"], table["worse"], table["series"]
    majority = (worse > 0) & (bdtr(np.maximum(worse - 1.0, 0.0), series, 0.5) > CLEAR)
    # without an interval there are too few times: the series may share one error
    for k in np.flatnonzero((low > 0.0) | (majority & np.isfinite(low))):
        where = "" if evaluation.horizon is None else f" at horizon {table['horizon'][k]:.12g}"
        empirical = f"worse in {worse[k]:,} of {series[k]:,} series" if series[k] > 1 else "worse"
        found.append(f"{empirical}{where} ({loss_name(evaluation)} {table['change'][k]:+.1%})")
    return found


def _coverage(evaluation: Evaluation) -> str:
    """Coverage of the main interval, or the mean probability furthest from its frequency."""
    share, rows = main_share(evaluation.levels), evaluation.rows
    if share is not None:
        low, high = (_percent(end, rows) for end in interval_band(evaluation, share))
        seen = [_percent(coverage(evaluation, share, side), rows) for side in evaluation.sides]
        what = f"The {level_name(share)} interval covered {seen[0]} of {_outcomes(rows)}"
        return f"{what}{_after(seen)} ({low} to {high} by chance)."
    if evaluation.kind == "quantiles":
        return ""
    came = outcomes_of(evaluation).mean(axis=0)
    means = np.stack([evaluation.side(side).mean(axis=0) for side in evaluation.sides])
    k = int(np.abs(means - came).max(axis=0).argmax())
    what = "The event" if evaluation.kind == "binary" else repr(evaluation.labels[k])
    seen = [_percent(float(p), rows) for p in means[:, k]]
    frequency = _percent(float(came[k]), rows)
    return f"{what} occurred in {frequency} of {_outcomes(rows)}; the mean probability was {seen[0]}{_after(seen)}."


def _calibration(evaluation: Evaluation) -> str:
    """Significant faults of both sides, and the calibration error."""
    name = "QCE" if evaluation.kind == "quantiles" else "ECE"
    errors = [f"{error(evaluation, side):.2g}" for side in evaluation.sides]
    found = f"Calibration error ({name}) {errors[0]}{_after(errors)}."
    if evaluation.after is None:
        return found
    wrong = {side: _and(faults(evaluation, side)) or "no significant fault" for side in evaluation.sides}
    share = main_share(evaluation.levels)
    was, now = (0.0, 0.0) if share is None else (width(evaluation, share, side) for side in evaluation.sides)
    wider = f" The mean width changed by {now / was - 1.0:+.0%}." if was > 0.0 else ""
    return f"Before: {wrong['before']}. After: {wrong['after']}.{wider} {found}"


def faults(evaluation: Evaluation, side: str = "before") -> list[str]:
    """Significant faults of the forecasts (99%); empty if there are none."""
    if not evaluation.rows:
        return []
    quantiles, several = evaluation.kind == "quantiles", len(evaluation.names) > 1
    found = _quantile_faults(evaluation, side) if quantiles else _probability_faults(evaluation, side)
    if found:
        return found
    if several and (named := [each.name for each in alarms(evaluation, side) if each.alarm]):
        are = "series is" if len(named) == 1 else "series are"
        return [f"{len(named):,} of {len(evaluation.names):,} {are} miscalibrated ({_few(named)})"]
    tested = reliability(evaluation, side, 1.0 - (1.0 - CLEAR) / (evaluation.levels.size if quantiles else BINS))
    off = tested.off & (np.abs(tested.observed - tested.nominal) > NEGLIGIBLE)
    where = _few([f"{nominal:.0%}" for nominal in tested.nominal[off]])
    what = "quantiles are off at the levels" if quantiles else "probabilities are off near"
    return [f"the {what} {where}"] if where else []


def _far_series(evaluation: Evaluation) -> str:
    """Series whose coverage is outside its chance band (99%, all of them together), if alarms have no power."""
    share, found = main_share(evaluation.levels), alarms(evaluation)
    if share is None or not too_late(found) or evaluation.horizon is not None:
        return ""
    table, gaps, series = by_series(evaluation), inside(evaluation, share), evaluation.series
    gaps = gaps - (np.bincount(series, gaps) / np.maximum(np.bincount(series), 1))[series]
    # errors of forecasts that overlap are correlated within a series
    alike = sum(
        float((gaps[lag:] * gaps[:-lag])[series[lag:] == series[:-lag]].sum())
        for lag in range(1, max(each.monitor.horizon for each in found))
    )
    effect = max(1.0 + 2.0 * alike / max(float(gaps @ gaps), 1e-300), 1.0)
    low, high = band(table["outcomes"] / effect, share, 1.0 - (1.0 - CLEAR) / len(found))
    covered = table["coverage_before"]
    far = np.flatnonzero((covered < low) | (covered - tie_excess(evaluation, share, "before") > high))
    texts = _few([f"{covered[k]:.0%} of {table['series'][k]}" for k in far])
    many = f"{far.size:,} of {len(found):,} series"
    return f"{many} are far off (the {level_name(share)} interval covers {texts})" if far.size else ""


def _few(texts: list[str]) -> str:
    """The first texts in one."""
    return ", ".join(_first(texts))


def _first(texts: list[str]) -> list[str]:
    """The first texts, and how many more there are."""
    return texts[:MOST_NAMED] + ([f"and {len(texts) - MOST_NAMED:,} more"] if len(texts) > MOST_NAMED else [])


def _quantile_faults(evaluation: Evaluation, side: str) -> list[str]:
    """Intervals that are too narrow or too wide, and a median that is too low or too high."""
    found = []
    # both sides are judged by one chance band, that of the last side
    for share in main_shares(evaluation.levels):
        covered = coverage(evaluation, share, side) - tie_excess(evaluation, share, side)
        if _is_off(covered, share, independent_rows(evaluation, share, CLEAR)):
            found.append(f"the {level_name(share)} interval is too {'narrow' if covered < share else 'wide'}")
    middle = place_of(evaluation.levels, 0.5)
    if middle is not None:
        below = float(frequencies(evaluation, side)[middle])
        effect = float(design_effect(evaluation, evaluation.sides[-1], sure=CLEAR)[middle])
        if _is_off(below, 0.5, evaluation.rows / effect):
            where, part, there = ("low", 1.0 - below, "above") if below < 0.5 else ("high", below, "below")
            found.append(f"the forecasts are too {where} ({part:.0%} of the outcomes {there} the median)")
    return found


def _is_off(frequency: float, nominal: float, rows: float) -> bool:
    low, high = map(float, band(rows, nominal, CLEAR))
    return not min(low, nominal - NEGLIGIBLE) <= frequency <= max(high, nominal + NEGLIGIBLE)


def _probability_faults(evaluation: Evaluation, side: str) -> list[str]:
    """Probabilities that are too high or too low on average, too extreme or too cautious."""
    p, came = evaluation.side(side), outcomes_of(evaluation)
    variance = p * (1.0 - p) * design_effect(evaluation, side, sure=CLEAR)
    found = []
    for k, label in enumerate(evaluation.labels):
        gap = float((came[:, k] - p[:, k]).sum())
        if abs(gap) > max(SIGMAS * float(np.sqrt(variance[:, k].sum())), NEGLIGIBLE * evaluation.rows):
            what = "the probabilities are" if evaluation.kind == "binary" else f"the probability of {label!r} is"
            far = f"{100.0 * abs(gap) / evaluation.rows:.2g} percentage points"
            found.append(f"{what} too {'low' if gap > 0.0 else 'high'} by {far} on average")
    # covariance of the probabilities and their errors: negative if they are too extreme
    centred = p - p.mean(axis=0)
    slope, scale = float((centred * (came - p)).sum()), float((centred**2).sum())
    if abs(slope) > max(SIGMAS * float(np.sqrt((centred**2 * variance).sum())), 0.02 * scale) and scale > 0.0:
        found.append(f"the probabilities are too {'extreme' if slope < 0.0 else 'cautious'}")
    return found


def effective_size(evaluation: Evaluation) -> float:
    """Effective sample size: the number of independent outcomes that say as much of the calibration."""
    share = main_share(evaluation.levels)
    if share is not None:
        return independent_rows(evaluation, share)
    return float((evaluation.rows / design_effect(evaluation, evaluation.sides[-1])).min()) if evaluation.rows else 0.0


def _sample_size(evaluation: Evaluation) -> str:
    size = effective_size(evaluation)
    if size > 0.8 * evaluation.rows:
        return ""
    empirical = f"{max(size, 1.0):,.0f} of {evaluation.rows:,}"
    return f"Errors are correlated: the effective sample size is {empirical}, and chance bands are that much wider."


def _accuracy(evaluation: Evaluation) -> str:
    """Mean losses of the forecasts."""
    name, found = loss_name(evaluation), difference(evaluation)
    text = f"{name[0].upper()}{name[1:]}: base forecasts {_mean(loss(evaluation)):.4g}"
    if found is None:
        return f"{text}."
    return f"{text}, recalibrated {found.after:.4g}: {_relative(found) if evaluation.timed else _up_to(found)}."


def _reference(evaluation: Evaluation) -> str:
    """Mean loss of the best reference."""
    best = best_reference(evaluation)
    if best is None:
        return ""
    known = "" if evaluation.timed else ", if each outcome is known before the next forecast"
    rows = "" if best.rows == evaluation.rows else f" (in the {best.rows:,} rows that have one)"
    return f"Best reference: {best.name}, {loss_name(evaluation)} {best.loss:.4g}{rows}{known}."


def _up_to(found: Difference) -> str:
    """Relative change in words, for forecasts whose issue times are unknown."""
    return f"up to {-found.relative:.1%} lower" if found.relative < 0.0 else "not lower"


def _lower(change: float) -> str:
    return f"{abs(change):.1%} {'lower' if change <= 0 else 'higher'}"


def _relative(found: Difference) -> str:
    """Relative change in words, with its interval."""
    if np.isnan(found.relative):
        return f"went from {found.before:.4g} to {found.after:.4g}"
    ends = f" (95% interval {found.relative_low:+.1%} to {found.relative_high:+.1%})"
    return _lower(found.relative) + ("" if np.isnan(found.relative_low) else ends)


def _guarantee(evaluation: Evaluation) -> str:
    """Miscalibration and its bound, the median of the last of each series."""
    if evaluation.promised is None or evaluation.miscalibration is None:
        return ""
    there = np.isfinite(evaluation.promised) & np.isfinite(evaluation.miscalibration)
    bound, size, series = evaluation.promised[there], evaluation.miscalibration[there], evaluation.series[there]
    if bound.size == 0:
        return ""
    order = np.lexsort((bound, series))  # the last bound of a series is its tightest
    last = order[np.unique(series[order], return_index=True)[1]]
    broken = int(np.count_nonzero(size > bound * (1.0 + ROUNDING)))
    held = f"broken in {broken:,} rounds" if broken else "held in every round"
    if evaluation.holds is not None and np.nanmin(evaluation.holds) < 1.0:
        held += f"; certificates held in {np.nanmean(evaluation.holds):.1%} of the rounds"
    median = " (median of the series)" if len(evaluation.names) > 1 else ""
    return f"Guarantee: miscalibration {np.median(size[last]):.4f}, bound {np.median(bound[last]):.4f}{median}, {held}."


def _left_out(evaluation: Evaluation) -> str:
    """Rows that do not count, and quantiles that were sorted."""
    counts = {
        "with an outcome outside the bounds": evaluation.outside,
        "without a forecast": evaluation.missing,
        "without an outcome yet": evaluation.pending,
    }
    left = [f"{count:,} {what}" for what, count in counts.items() if count]
    found = [f"Rows left out: {', '.join(left)}."] if left else []
    if evaluation.crossed:
        found.append(f"Quantiles crossed in {evaluation.crossed:,} of {evaluation.rows:,} forecasts and were sorted.")
    return " ".join(found)


def _outcomes(count: int) -> str:
    return f"{count:,} outcome{'' if count == 1 else 's'}"


def _after(seen: list[str]) -> str:
    return f", after recalibration {seen[1]}" if len(seen) > 1 else ""


def _and(parts: list[str]) -> str:
    return " and ".join(([", ".join(parts[:-1])] if len(parts) > 1 else []) + parts[-1:])


def _percent(share: float, rows: int) -> str:
    return f"{share:.1%}" if rows >= 1000 else f"{share:.0%}"
