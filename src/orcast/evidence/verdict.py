"""What the numbers say, in sentences."""

from __future__ import annotations

import numpy as np

from orcast.evidence.accuracy import difference, loss_name, recent_difference
from orcast.evidence.base import SIDES, Evidence, outcomes_of
from orcast.evidence.blocks import design_effect, frequencies
from orcast.evidence.diagnostics import promise_check
from orcast.evidence.statistics import (
    SURE,
    band,
    coverage,
    ends_of,
    error,
    independent_rows,
    interval_band,
    level_band,
    level_name,
    limit_of,
    main_share,
    main_shares,
    place_of,
    shares,
    width,
)
from orcast.evidence.tables import GroupTable, by_group, by_series, reference_scores

# With very many outcomes everything is beyond chance.  A smaller fault of a frequency is not reported.
NEGLIGIBLE = 0.005
# Outcomes beyond the bounds come first if there are more than this share of them.
MANY = 0.02
# Outcomes that equal a quantile are mentioned from this share on, unless there are more levels than this.
TIED, CLOSE = 0.1, 40
# That outcomes depend on each other is mentioned if they are worth at most this share of independent ones.
TOGETHER = 0.8
# What is called a fault is outside of what chance does in 99 of 100 cases: several are looked for.
CLEAR, SIGMAS = 0.99, 2.576


def verdict(evidence: Evidence) -> list[str]:
    """What the numbers say, in sentences: what counts as known when, then the most important first.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.normal(size=1000)
    >>> narrow, right = np.tile([-1.0, 0.0, 1.0], (1000, 1)), np.tile([-1.645, 0.0, 1.645], (1000, 1))
    >>> verdict(Evidence.of(narrow, y, after=right, levels=[0.05, 0.5, 0.95]))[1]
    'The 90% interval covered 68.4% of 1,000 outcomes; after recalibration 91.4% (88.1% to 91.8% would be chance).'
    """
    if evidence.rows == 0:
        some = "No row has both a forecast and an outcome" if evidence.missing else "No outcome is known yet"
        return [*_on_left_out(evidence), f"{some}, so there is nothing to judge by.", *_on_rest(evidence)]
    main = _on_main(evidence)
    left_out = _on_left_out(evidence)
    many = evidence.outside > MANY * (evidence.rows + evidence.outside)
    return [
        *assumptions(evidence),
        *(left_out if many else []),
        *main[:1],
        *_on_size(evidence),
        *main[1:],
        *_on_faults(evidence),
        *_on_width(evidence),
        _on_error(evidence),
        *_on_accuracy(evidence),
        *_on_reference(evidence),
        *_on_groups(evidence),
        *_on_series(evidence),
        *_on_promise(evidence),
        *([] if many else left_out),
        *_on_rest(evidence),
    ]


def assumptions(evidence: Evidence) -> list[str]:
    """Outcomes that count as known at each forecast, in a sentence; nothing without outcomes.

    >>> print(*assumptions(Evidence.of([[0.0]], [1.0], levels=[0.5])))
    Each outcome counts as known before the next forecast is issued (no issue times were given),
    which flatters those issued ahead.
    """
    if evidence.rows == 0:
        return []
    return [f"{evidence.assumption[:1].upper()}{evidence.assumption[1:]}."]


def headline(evidence: Evidence) -> str:
    """The sentence that says most: how often the outcomes fell where they should.

    >>> headline(Evidence.of([[-1.0, 1.0]] * 40, np.zeros(40), levels=[0.25, 0.75]))
    'The 50% interval covered 100% of 40 outcomes (35% to 65% would be chance).'
    """
    return _on_main(evidence)[0] if evidence.rows else verdict(evidence)[0]


def _on_main(evidence: Evidence) -> list[str]:
    return _on_intervals(evidence) if evidence.kind == "quantiles" else _on_averages(evidence)


def faults(evidence: Evidence, side: str = "before") -> list[str]:
    """What is clearly wrong with the forecasts, beyond what chance does in 99 of 100 cases; nothing if all is well.

    >>> rng = np.random.default_rng(0)
    >>> narrow = np.tile([-1.0, 0.0, 1.0], (1000, 1))
    >>> faults(Evidence.of(narrow, rng.normal(size=1000), levels=[0.05, 0.5, 0.95]))
    ['the 90% interval is too narrow']
    """
    return [] if evidence.rows == 0 else _faults(evidence, side, was=False)


# --- coverage, and mean probabilities


def _on_intervals(evidence: Evidence) -> list[str]:
    lines = []
    rows = evidence.rows
    for k, share in enumerate(main_shares(evidence)):
        low, high = (_percent(float(end), rows) for end in interval_band(evidence, share))
        seen = [_percent(coverage(evidence, share, side), rows) for side in evidence.sides]
        of = f" of {_outcomes(rows)}" if k == 0 else ""
        lines.append(
            f"The {level_name(share)} interval covered {seen[0]}{of}{_then(seen)} ({low} to {high} would be chance)."
        )
    if not lines:
        at = int(np.abs(evidence.levels - 0.5).argmax())
        low, high = (_percent(float(end[at]), rows) for end in level_band(evidence))
        seen = [_percent(float(frequencies(evidence, side)[at]), rows) for side in evidence.sides]
        lines.append(
            f"Of {_outcomes(rows)} {seen[0]} were at or below the {level_name(evidence.levels[at])} quantile"
            f"{_then(seen)} ({low} to {high} would be chance)."
        )
    return lines


def _on_averages(evidence: Evidence) -> list[str]:
    """The mean probability against the frequency; of labels the one that is furthest off."""
    rows = evidence.rows
    came = outcomes_of(evidence).mean(axis=0)
    means = np.stack([evidence.side(side).mean(axis=0) for side in evidence.sides])
    k = int(np.abs(means - came).max(axis=0).argmax())
    seen = [_percent(float(p), rows) for p in means[:, k]]
    what = "It" if evidence.kind == "binary" else repr(evidence.labels[k])
    then = f", after recalibration {seen[1]}" if len(seen) > 1 else ""
    happened = f"{what} came in {_percent(float(came[k]), rows)} of {_outcomes(rows)}"
    return [f"{happened}; the forecasts said {seen[0]} on average{then}."]


def _then(seen: list[str]) -> str:
    return f"; after recalibration {seen[1]}" if len(seen) > 1 else ""


def _on_size(evidence: Evidence) -> list[str]:
    """Whether there are enough outcomes to judge by: how far a calibrated forecaster strays by chance."""
    widest = shares(evidence)[-1] if shares(evidence) else None
    low, high = map(float, band(evidence.rows, 0.9)) if widest is None else interval_band(evidence, widest)
    # what is clearly wrong is so in spite of few outcomes
    faulty = any(_faults(evidence, side, was=False) for side in evidence.sides)
    if high - low > 0.2 and not faulty:
        return [
            f"{_outcomes(evidence.rows).capitalize()} are too few to judge by.".replace("outcome are", "outcome is")
        ]
    if high - low > 0.1:
        return [f"{_outcomes(evidence.rows).capitalize()} show large faults only."]
    return []


# --- what is wrong


def _on_faults(evidence: Evidence) -> list[str]:
    """What is wrong, before and after."""
    last = evidence.sides[-1]
    found = {side: _faults(evidence, side, was=side != last) for side in evidence.sides}
    within = not _beyond_chance(evidence, last)
    clear = "nothing is clearly wrong" + ("" if within else ", though not all is within what chance allows")
    if last == "before":
        if found[last]:
            return [f"What is wrong: {_and(found[last])}."]
        return [f"{clear.capitalize()}."]
    if not found["before"] and not found["after"] and within:
        return ["Nothing was clearly wrong before, and nothing is after."]
    lines = [f"Before, {_and(found['before'])}."] if found["before"] else []
    return [*lines, f"After, {_and(found['after']) if found['after'] else clear}."]


def _beyond_chance(evidence: Evidence, side: str) -> bool:
    """Whether a number of the verdict lies beyond what a calibrated forecaster shows in 19 of 20 cases."""
    return _large_error(evidence, side, SURE) or any(
        _is_off(coverage(evidence, share, side), share, interval_band(evidence, share, side, SURE))
        for share in main_shares(evidence)
    )


def _large_error(evidence: Evidence, side: str, sure: float) -> bool:
    """Whether the calibration error is beyond chance, and not negligible."""
    negligible = NEGLIGIBLE**2 * evidence.levels.size if evidence.kind == "quantiles" else NEGLIGIBLE
    judged = evidence.sides[-1] if evidence.kind == "quantiles" else side
    return error(evidence, side) > max(limit_of(evidence, judged, sure), negligible)


def _is_off(frequency: float, share: float, chance: tuple[float, float]) -> bool:
    """Whether a frequency is beyond chance, and by more than is negligible."""
    low, high = chance
    return not min(low, share - NEGLIGIBLE) <= frequency <= max(high, share + NEGLIGIBLE)


def _faults(evidence: Evidence, side: str, *, was: bool) -> list[str]:
    one, many = ("was", "were") if was else ("is", "are")
    look = _quantile_faults if evidence.kind == "quantiles" else _probability_faults
    found = look(evidence, side, one, many)
    if found or not _large_error(evidence, side, CLEAR):
        return found
    if evidence.kind != "quantiles":
        return [f"some probabilities {many} too high and others too low"]
    gaps = frequencies(evidence, side) - evidence.levels
    if (gaps < 0.0).all() or (gaps > 0.0).all():
        return [f"the quantiles {many} too {'low' if gaps[0] < 0.0 else 'high'}"]
    return [f"some quantiles {many} too high and others too low"]


def _quantile_faults(evidence: Evidence, side: str, one: str, many: str) -> list[str]:
    found = []
    for share in main_shares(evidence):
        covered = coverage(evidence, share, side)
        # both sides are judged by one measure of chance, that of the last one
        if _is_off(covered, share, interval_band(evidence, share, sure=CLEAR)):
            found.append((share, "too narrow" if covered < share else "too wide"))
    if len(found) > 1 and len({how for _, how in found}) == 1:
        widths = [f"the intervals {many} {found[0][1]}"]
    else:
        widths = [f"the {level_name(share)} interval {one} {how}" for share, how in found]
    return [*widths, *_bias(evidence, side, many)]


def _bias(evidence: Evidence, side: str, are: str) -> list[str]:
    """Whether the outcomes fall too often on one side, and by how much."""
    rows, hits = evidence.rows, frequencies(evidence, side)
    middle = place_of(evidence, 0.5)
    if middle is not None:
        below = float(hits[middle])
        low, high = (float(end[middle]) for end in level_band(evidence, sure=CLEAR))
        if not _is_off(below, 0.5, (low, high)):
            return []
        far = ""
        if len(evidence.names) == 1:
            shift = abs(float(np.median(evidence.y - evidence.side(side)[:, middle])))
            far = f" by about {shift:.3g}" if shift > 0.0 else ""
        which, where = ("low", "above") if below < 0.5 else ("high", "below")
        part = _percent(max(below, 1.0 - below), rows)
        return [f"the forecasts {are} too {which}{far} ({part} of the outcomes {where} the median)"]
    if not shares(evidence):
        return []
    lower, upper = ends_of(evidence, shares(evidence)[0])
    below, above = float(hits[lower]), float(1.0 - hits[upper])
    effect = float(design_effect(evidence, side, sure=CLEAR)[[lower, upper]].max())
    if abs(below - above) <= max(SIGMAS * np.sqrt(2.0 * effect * evidence.levels[lower] / rows), 2.0 * NEGLIGIBLE):
        return []
    parts = f"{_percent(below, rows)} of the outcomes below the {level_name(shares(evidence)[0])} interval"
    which = "low" if above > below else "high"
    return [f"the forecasts {are} too {which} ({parts}, {_percent(above, rows)} above it)"]


def _probability_faults(evidence: Evidence, side: str, one: str, many: str) -> list[str]:
    """Too high or too low on average, too bold or too timid: beyond what right probabilities show by chance."""
    p, came = evidence.side(side), outcomes_of(evidence)
    variance = p * (1.0 - p) * design_effect(evidence, side, sure=CLEAR)
    found = []
    for k, label in enumerate(evidence.labels):
        gap = float((came[:, k] - p[:, k]).sum())
        if abs(gap) > max(SIGMAS * float(np.sqrt(variance[:, k].sum())), NEGLIGIBLE * evidence.rows):
            what = f"the probabilities {many}" if evidence.kind == "binary" else f"the probability of {label!r} {one}"
            far = f"{100.0 * abs(gap) / evidence.rows:.2g} percentage points"
            found.append(f"{what} too {'low' if gap > 0.0 else 'high'} by {far} on average")
    # the covariance of the probabilities and their errors: negative if they are too bold
    centred = p - p.mean(axis=0)
    slope, scale = float((centred * (came - p)).sum()), float((centred**2).sum())
    if abs(slope) > max(SIGMAS * float(np.sqrt((centred**2 * variance).sum())), 0.02 * scale) and scale > 0.0:
        bold = f"high probabilities {many} too high and low ones too low"
        found.append(bold if slope < 0.0 else f"high probabilities {many} too low and low ones too high")
    return found


# --- errors, accuracy, series, promise


def _on_width(evidence: Evidence) -> list[str]:
    share = main_share(evidence)
    if evidence.after is None or share is None:
        return []
    was, now = (width(evidence, share, side) for side in SIDES)
    if not was > 0.0:
        return []
    change = now / was - 1.0
    if abs(change) < NEGLIGIBLE:
        return [f"On average the {level_name(share)} interval is as wide as before."]
    return [
        f"On average the {level_name(share)} interval became {abs(change):.0%} {'wider' if change > 0 else 'narrower'}."
    ]


def _on_error(evidence: Evidence) -> str:
    levels = evidence.levels.size
    name = f"QCE, {levels} level{'s' if levels > 1 else ''}" if evidence.kind == "quantiles" else "ECE"
    limit = limit_of(evidence, evidence.sides[-1])
    then = "" if evidence.after is None else f", after recalibration {_small(error(evidence, 'after'))}"
    return (
        f"The calibration error ({name}) was {_small(error(evidence, 'before'))}{then}; "
        f"a calibrated forecaster stays below {max(limit, 0.0001):.4f} in 19 of 20 cases."
    )


def _on_accuracy(evidence: Evidence) -> list[str]:
    found = difference(evidence)
    if found is None:
        return []
    if np.isnan(found.relative):
        return [f"The {found.name} went from {found.before:.4g} to {found.after:.4g}."]
    how = f"{found.name} {abs(found.relative):.1%} {'lower' if found.relative <= 0 else 'higher'}"
    if np.isnan(found.relative_low):
        return [f"Whether accuracy changed cannot be said from so few outcomes ({how})."]
    ends = f"95% interval {found.relative_low:+.1%} to {found.relative_high:+.1%}"
    if found.clear and found.change > 0:
        return [f"The forecasts became less accurate: {how} ({ends})."]
    said = "The forecasts became more accurate" if found.clear else "Accuracy did not change measurably"
    return [f"{said}: {how} ({ends}).", *_on_recent(evidence)]


def _on_recent(evidence: Evidence) -> list[str]:
    """Whether the latest forecasts became worse, which a gain of long ago would hide."""
    found = recent_difference(evidence)
    if found is None or not (found.clear and found.relative > NEGLIGIBLE):
        return []
    ends = f"95% interval {found.relative_low:+.1%} to {found.relative_high:+.1%}"
    worse = f"{found.name} was {found.relative:.1%} higher than as given ({ends})"
    return [f"Lately they are less accurate: in the last quarter of the time {worse}."]


def _on_reference(evidence: Evidence) -> list[str]:
    """Scores of the last known outcome, at the same information."""
    lines = []
    found = reference_scores(evidence)
    if found is not None:
        names = {"before": "as given", "after": "recalibrated"}
        both = _and([f"{names[side]} {_against(found.loss, side)}" for side in evidence.sides])
        without = evidence.rows - found.rows
        where = f" (as given for {_outcomes(without)} with too little past)" if without > 0.05 * evidence.rows else ""
        lines.append(
            f"At the same information the last known outcome with its own spread{where} has {loss_name(evidence)} "
            f"{found.loss['reference']:.4g}; {both}."
        )
    return lines


def _against(losses: dict[str, float], side: str) -> str:
    """A loss beside that of the last known outcome."""
    if not losses["reference"] > 0.0:
        return f"{losses[side]:.4g}"
    change = losses[side] / losses["reference"] - 1.0
    return f"{losses[side]:.4g} ({abs(change):.1%} {'lower' if change <= 0.0 else 'higher'})"


def _on_groups(evidence: Evidence) -> list[str]:
    """Where one group gains and another loses beyond chance: the mean hides it."""
    lines = []
    for grouping in evidence.by:
        table = by_group(evidence, grouping)
        if table.clear is None or table.relative is None or not ((table.clear < 0).any() and (table.clear > 0).any()):
            continue
        order = np.argsort(table.relative)
        fell = [_group(table, k) for k in order if table.clear[k] < 0]
        rose = [_group(table, k) for k in order[::-1] if table.clear[k] > 0]
        lines.append(f"By {table.name} {loss_name(evidence)} fell for {_some(fell)} and rose for {_some(rose)}.")
    return lines


def _group(table: GroupTable, k: int) -> str:
    assert table.relative is not None
    return f"{table.labels[k]} ({table.relative[k]:+.1%})"


def _some(parts: list[str], most: int = 4) -> str:
    return _and(parts if len(parts) <= most else [*parts[:most], f"{len(parts) - most} more"])


def _on_series(evidence: Evidence) -> list[str]:
    table = by_series(evidence)
    count = len(table.names)
    if count < 2:
        return []
    was = int(table.outside_before.sum())
    if table.outside_after is None:
        found = f"{was:,} are further off than chance allows"
    else:
        after = int(table.outside_after.sum())
        found = f"{was:,} were further off than chance allows, after recalibration {after:,}"
    expected = f"chance alone would make about {_few((1.0 - SURE) * count)} of them look so, more if they move together"
    return [f"Of {count:,} series {found} ({expected})."]


def _on_promise(evidence: Evidence) -> list[str]:
    lines = []
    found = promise_check(evidence)
    if found is not None and found.kept == found.rows:
        size, bound = found.final
        several = len(evidence.names) > 1
        which = "the miscalibration of a series (the median of them)" if several else "the miscalibration"
        which += ", at the step ahead with the tightest promise," if evidence.overlap else ""
        lines.append(
            f"The promise held after every outcome: in the end {which} was {size:.4f}, "
            f"at most {bound:.4f} was promised."
        )
        if bound >= 0.3:
            lines.append("So early the promise says little; it tightens with the square root of the outcomes' number.")
    elif found is not None:
        lines.append(f"The promise was broken after {found.rows - found.kept:,} of {_outcomes(found.rows)}.")
    if evidence.holds is not None:
        known = evidence.holds[np.isfinite(evidence.holds)]
        missed = int(np.count_nonzero(known == 0.0))
        if missed:
            lines.append(
                f"The certificate did not hold for {missed:,} of {_forecasts(known.size)}: "
                "nothing was promised against what their outcomes added."
            )
    return lines


def _ties(evidence: Evidence) -> float:
    """The share of outcomes that equal a quantile, where levels are too far apart to tell what lies below."""
    if evidence.kind != "quantiles" or not evidence.rows or evidence.levels.size > CLOSE:
        return 0.0
    return max(float((evidence.side(side) == evidence.y[:, None]).any(axis=1).mean()) for side in evidence.sides)


def _on_left_out(evidence: Evidence) -> list[str]:
    """Outcomes that do not count."""
    if not evidence.outside:
        return []
    beyond = "was" if evidence.outside == 1 else "were"
    whole = evidence.rows + evidence.outside
    return [f"{evidence.outside:,} of {_outcomes(whole)} {beyond} beyond the bounds and left out."]


def _on_dependence(evidence: Evidence) -> list[str]:
    """How much less there is to judge by where outcomes are not independent."""
    share = main_share(evidence)
    if not evidence.rows or share is None:
        return []
    rows = independent_rows(evidence, share)
    if rows > TOGETHER * evidence.rows:
        return []
    why = [
        *(["forecasts that overlap"] if evidence.overlap else []),
        *(["errors that last, or series that move together"] if len(evidence.names) > 1 else []),
    ] or ["errors that last"]
    return [
        f"Because of {' and of '.join(why)}, {_outcomes(evidence.rows)} tell as much of the {level_name(share)} "
        f"interval as {max(rows, 1.0):,.0f} independent ones would; what is called chance here is so much wider."
    ]


def _on_rest(evidence: Evidence) -> list[str]:
    lines = []
    if evidence.crossed:
        lines.append(
            f"Quantiles crossed in {_forecasts(evidence.crossed)} of {evidence.rows:,}; they were sorted before "
            "anything was scored."
        )
    if evidence.point and evidence.rows:
        lines.append(
            "A point forecast has no intervals: those before are what its own past errors gave, once there were some."
        )
    if evidence.moments and evidence.rows:
        lines.append("What came out is read as a normal distribution with that mean and spread; levels give quantiles.")
    lines += _on_dependence(evidence)
    tied = _ties(evidence)
    if tied > TIED:
        lines.append(
            f"{_percent(tied, evidence.rows)} of the outcomes equal a quantile: how much of them belongs below it can "
            "only be guessed between so few levels, so a fault may be one of the guess."
        )
    if evidence.missing:
        lines.append(f"{evidence.missing:,} row{' has' if evidence.missing == 1 else 's have'} no forecast.")
    if evidence.pending:
        have = "has" if evidence.pending == 1 else "have"
        lines.append(f"{_forecasts(evidence.pending).capitalize()} {have} no outcome yet.")
    return lines


# --- numbers as text


def _outcomes(count: int) -> str:
    return f"{count:,} outcome{'' if count == 1 else 's'}"


def _forecasts(count: int) -> str:
    return f"{count:,} forecast{'' if count == 1 else 's'}"


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _few(count: float) -> str:
    return f"{count:,.0f}" if count >= 3 else f"{count:.1g}"


def _percent(share: float, rows: int) -> str:
    """A frequency, with a decimal if there are outcomes enough for it to mean something."""
    return f"{share:.1%}" if rows >= 1000 else f"{share:.0%}"


def _small(value: float) -> str:
    return f"{value:.4f}" if value >= 0.0001 or value == 0.0 else "less than 0.0001"
