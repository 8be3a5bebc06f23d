"""Sections of one model: pictures, then groups, scores, the promise and the series."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from orcast import evidence as facts
from orcast.evidence import Evidence, Grouping
from orcast.evidence.statistics import level_name
from orcast.report import pictures, svg
from orcast.report.html import details, figure, pair, table
from orcast.report.pictures import SIDE_NAMES, Picture
from orcast.report.text import capital, count, name, number, percent, plain, shortened, small

Vector = NDArray[np.float64]

# So much is shown, however much there is: the page stays small.
MOST_SERIES, FIRST_SERIES, MOST_SCORES, LAST, POINTS = 50, 12, 30, 120, 200


def sections(evidence: Evidence) -> str:
    """All sections that there is evidence for."""
    quantiles: tuple[Callable[[Evidence], str], ...] = (_pit, _reliability, _over_time, _fan, _sharpness)
    parts = quantiles if evidence.kind == "quantiles" else (_probabilities, _probability_shares)
    return "".join(part(evidence) for part in (*parts, _groups, _scores, _promise, _series))


def _drawn(picture: Picture) -> str:
    return svg.key([picture]) + svg.draw(picture)


def _side_by_side(each: Sequence[Picture]) -> str:
    """Pictures in a row under one key, each with its finding as heading."""
    return svg.key(each) + pair([(picture.finding, svg.draw(picture)) for picture in each])


def _chance(low: float, high: float) -> str:
    return f"{percent(low, decimals=2)} to {percent(high, decimals=2)}"


# --- pictures of quantiles ------------------------------------------------------------------------


def _pit(evidence: Evidence) -> str:
    lead = (
        "Bars of one height are calibrated. High ends mean intervals that are too narrow, a hill in the middle "
        "too wide, a slope forecasts that are too high or too low."
    )
    drawing = _side_by_side([pictures.pit(evidence, [side]) for side in evidence.sides])
    return figure("Where in the forecast the outcomes fell", lead, drawing)


def _reliability(evidence: Evidence) -> str:
    found = {side: facts.reliability(evidence, side) for side in evidence.sides}
    outside = "; ".join(f"{SIDE_NAMES[side]} {r.outside} of {r.nominal.size}" for side, r in found.items())
    lead = (
        f"How often the outcome was below each quantile, against the quantile's level. Levels beyond chance: {outside}."
    )
    drawing = f'<div class="narrow">{_drawn(pictures.reliability(evidence))}</div>'
    return figure("Reliability of the quantiles", lead, drawing)


def _over_time(evidence: Evidence) -> str:
    if facts.main_share(evidence) is None:
        return ""
    found = facts.rolling(evidence, points=POINTS)
    lead = (
        f"Share of the last {count(found.window, 'outcome')} inside the {level_name(found.share)} interval; "
        f"in a window chance allows {percent(found.low)} to {percent(found.high)}."
    )
    return figure("Coverage over time", lead, _drawn(pictures.rolling(evidence, points=POINTS)))


def _fan(evidence: Evidence) -> str:
    found = facts.fan(evidence, last=LAST)
    if found.rows.size == 0:
        return ""
    lead = f"last {found.rows.size:,} of {count(found.total, 'outcome')}."
    if len(evidence.names) > 1:
        lead = f"Series {name(found.name)}, the worst of {len(evidence.names):,}: its {lead}"
    else:
        lead = f"The {lead}"
    return figure("Recent forecasts", lead, _drawn(pictures.fan(evidence, last=LAST)))


def _sharpness(evidence: Evidence) -> str:
    if not facts.widths(evidence).shares:
        return ""
    lead = "How wide the intervals are. Among calibrated forecasts the narrower are the better."
    return figure("Sharpness", lead, _drawn(pictures.sharpness(evidence)))


# --- groups ---------------------------------------------------------------------------------------


def _groups(evidence: Evidence) -> str:
    return "".join(_group(evidence, grouping) for grouping in evidence.by)


def _group(evidence: Evidence, grouping: Grouping) -> str:
    """One way to group the rows: coverage and the change of the loss."""
    found = facts.by_group(evidence, grouping)
    if len(found.labels) < 2:
        return ""
    columns: list[tuple[str, list[str]]] = [("Outcomes", [f"{int(rows):,}" for rows in found.rows])]
    if found.share is not None and found.coverage_before is not None and found.chance is not None:
        covered = f"{level_name(found.share)} interval covered"
        columns += [
            (covered, _both(percent, found.coverage_before, found.coverage_after)),
            ("chance allows", [_chance(low, high) for low, high in zip(*found.chance, strict=True)]),
        ]
    columns.append((capital(facts.scores(evidence)[-1].name), _both(number, found.loss_before, found.loss_after)))
    if found.relative is not None and found.low is not None and found.high is not None:
        columns.append(("Change", [percent(v, sign=True) for v in found.relative]))
        ends = zip(found.low, found.high, strict=True)
        columns.append(
            ("Its 95% interval", [f"{percent(low, sign=True)} to {percent(high, sign=True)}" for low, high in ends])
        )
    rows = [[name(label, limit=40), *(cells[k] for _, cells in columns)] for k, label in enumerate(found.labels)]
    title = f"By {grouping.name}"
    numbers = table([capital(grouping.name), *(head for head, _ in columns)], rows, label=title)
    each = [pictures.group_coverage(evidence, grouping)] if found.share is not None else []
    if found.relative is not None:
        each.append(pictures.group_change(evidence, grouping))
    if not each:
        return f'<section class="part"><h3>{plain(title)}</h3>{numbers}</section>'
    drawing = "".join(f"<h4>{plain(p.finding)}</h4>{_drawn(p)}" for p in each)
    return figure(title, _group_lead(found), drawing + details("The numbers", numbers))


def _both(show: Callable[[float], str], was: Vector, now: Vector | None) -> list[str]:
    return [show(v) if now is None else f"{show(v)} → {show(now[k])}" for k, v in enumerate(was)]


def _group_lead(found: facts.GroupTable) -> str:
    if found.clear is None:
        return "Groups of outcomes side by side."
    fell, rose = (int(np.count_nonzero(found.clear == sign)) for sign in (-1, 1))
    return (
        f"Of {count(len(found.labels), 'group')} the loss fell beyond chance for {fell:,} and rose for {rose:,}, "
        "all looked at together."
    )


# --- pictures of probabilities --------------------------------------------------------------------


def _probabilities(evidence: Evidence) -> str:
    each = [pictures.reliability(evidence, [side]) for side in evidence.sides]
    panels = [(p.finding, f'<div class="narrow">{svg.draw(p)}</div>') for p in each]
    what = "it came" if evidence.kind == "binary" else "a label came"
    lead = f"How often {what}, against the probability that it was given. On the diagonal the two are the same."
    return figure("Reliability of the probabilities", lead, svg.key(each) + pair(panels))


def _probability_shares(evidence: Evidence) -> str:
    lead = "How often each probability was given. Among calibrated forecasts those nearer to 0% and 100% say more."
    drawing = pair([(p.finding, svg.draw(p)) for p in (pictures.probabilities(evidence, s) for s in evidence.sides)])
    return figure("Sharpness", lead, drawing)


# --- scores, promise, series ----------------------------------------------------------------------


def _scores(evidence: Evidence) -> str:
    found = facts.scores(evidence)
    after = evidence.after is not None
    rows = []
    shown = found if len(found) <= MOST_SCORES else [*found[: MOST_SCORES - 2], *found[-2:]]
    for score in shown:
        show = percent if score.form == "percent" else number
        cells = [plain(shortened(capital(score.name), 60)), show(score.before)]
        if after:
            change = None if score.after is None else score.after - score.before
            interval = number(None)
            if score.low is not None and score.high is not None and np.isfinite([score.low, score.high]).all():
                interval = f"{number(score.low, digits=3, sign=True)} to {number(score.high, digits=3, sign=True)}"
            sign = number(change, digits=3, sign=True) if show is number else _points(change)
            cells += [show(score.after), sign, interval]
        chance = number(None) if score.chance is None else f"{show(score.chance[0])} to {show(score.chance[1])}"
        rows.append([*cells, show(score.target), chance])
    heads = ["Score", "As given"] + (["Recalibrated", "Change", "Its 95% interval"] if after else [])
    body = table([*heads, "If calibrated", "Chance allows"], rows, label="Scores")
    notes = []
    difference = facts.difference(evidence)
    if difference is not None and difference.units:
        notes.append(f"The interval is from a bootstrap of {count(difference.units, *_unit(difference.unit))}.")
    if len(shown) < len(found):
        notes.append(f"{len(shown)} of {len(found)} scores are shown.")
    note = f'<p class="note">{" ".join(notes)}</p>' if notes else ""
    return f'<section class="part"><h3>Scores</h3>{body}{note}</section>'


def _points(change: float | None) -> str:
    text = percent(change, sign=True)
    return text.replace("%", " points")


def _unit(unit: str) -> tuple[str, str]:
    return ("series", "series") if unit == "series" else ("block of time", "blocks of time")


def _promise(evidence: Evidence) -> str:
    found = facts.promise_check(evidence)
    if found is None:
        return ""
    held = "" if found.held is None else f" Certificates that held before the outcome: {percent(found.held)}."
    how = "All series together, by what was promised: the more outcomes, the less."
    if found.single:
        how = "After each outcome, under the bound that was known before it."
    lead = f"{how} {found.summary}{held}"
    return figure("Miscalibration and the promise", lead, _drawn(pictures.promise(evidence)))


def _series(evidence: Evidence) -> str:
    if len(evidence.names) < 2:
        return ""
    found = facts.by_series(evidence)
    total = len(found.names)
    many = min(total, MOST_SERIES)
    ratios = _error_ratios(found)
    heads, rows = _series_rows(found, ratios, many)
    body = table(heads, rows[:FIRST_SERIES], label="Series by series")
    if many > FIRST_SERIES:
        more = table(heads, rows[FIRST_SERIES:], label="More series")
        body += details(f"The next {many - FIRST_SERIES}", more)
    note = ""
    if many < total:
        rest = ratios[evidence.sides[-1]][many:]
        note = (
            f'<p class="note">The {many} worst of {count(total, "series", "series")} are shown; of the others '
            f"{int(np.count_nonzero(rest > 1.0)):,} are beyond what chance allows.</p>"
        )
    lead = "The worst first. Left of the line is what chance allows a calibrated forecaster."
    return (
        f'<section class="part series"><h3>Series by series</h3><p class="soft">{lead}</p>'
        f"{svg.swatches([(f'dot {side}', SIDE_NAMES[side]) for side in ratios])}{body}{note}</section>"
    )


def _error_ratios(found: facts.SeriesTable) -> dict[str, Vector]:
    """The error of each series over what chance allows."""
    ratios = {"before": found.error_before / np.maximum(found.limit_before, 1e-300)}
    if found.error_after is not None and found.limit_after is not None:
        ratios["after"] = found.error_after / np.maximum(found.limit_after, 1e-300)
    return ratios


def _series_rows(found: facts.SeriesTable, ratios: dict[str, Vector], many: int) -> tuple[list[str], list[list[str]]]:
    scale = pictures.ratio_scale(*(ratio[:many] for ratio in ratios.values()))
    limits = found.limit_before if found.limit_after is None else found.limit_after
    columns: list[tuple[str, Callable[[float], str], Vector, Vector | None]] = []
    if found.share is not None and found.coverage_before is not None:
        columns.append(
            (f"{level_name(found.share)} interval covered", percent, found.coverage_before, found.coverage_after)
        )
    columns += [
        ("Calibration error", small, found.error_before, found.error_after),
        ("Chance allows up to", small, limits, None),
        ("Loss", number, found.loss_before, found.loss_after),
    ]
    rows = [
        [
            name(found.names[k], limit=40),
            svg.dumbbell({side: float(ratio[k]) for side, ratio in ratios.items()}, scale),
            f"{int(found.rows[k]):,}",
            *(
                show(float(was[k])) + ("" if now is None else f" → {show(float(now[k]))}")
                for _, show, was, now in columns
            ),
        ]
        for k in range(many)
    ]
    return ["Series", "Error over what chance allows", "Outcomes", *(head for head, _, _, _ in columns)], rows
