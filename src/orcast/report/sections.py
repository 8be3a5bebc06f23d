"""What is shown of one model: pictures, each with its numbers as a table, then scores, the promise and the series."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from orcast import evidence as facts
from orcast.evidence import Evidence
from orcast.evidence.statistics import BINS, place_of
from orcast.report import charts
from orcast.report import selection as choices
from orcast.report.axes import TimeAxis, moment
from orcast.report.charts import WORDS, key
from orcast.report.html import details, figure, pair, table
from orcast.report.text import capital, count, level, name, number, percent, plain, shortened, small

Vector = NDArray[np.float64]

# So much is shown, however much there is: the page stays small.
MOST_SERIES, FIRST_SERIES, MOST_SCORES, LAST, POINTS = 50, 12, 30, 120, 200


def sections(evidence: Evidence) -> str:
    """All sections that there is evidence for."""
    quantiles: tuple[Callable[[Evidence], str], ...] = (_pit, _reliability, _over_time, _fan, _sharpness)
    parts = quantiles if evidence.kind == "quantiles" else (_probabilities, _boldness)
    return "".join(part(evidence) for part in (*parts, _scores, _promise, _series))


def _chance() -> tuple[str, str]:
    return ("area chance", "what chance allows")


# --- pictures of quantiles ------------------------------------------------------------------------


def _pit(evidence: Evidence) -> str:
    found = {side: facts.pit(evidence, side) for side in evidence.sides}
    one = found["before"]
    top = 1.06 * max(
        2.0, *(float(h.density.max()) for h in found.values()), float((one.high / np.diff(one.edges)).max())
    )
    panels = [
        (
            f"{capital(WORDS[side])}: {h.outside} of {h.shares.size} beyond chance",
            charts.histogram(
                h.edges, h.shares, (h.low, h.high), who=side, top=top, title=f"PIT histogram, {WORDS[side]}"
            ),
        )
        for side, h in found.items()
    ]
    drawing = key(*((f"bar {side}", WORDS[side]) for side in found), ("area shade", "what chance allows")) + pair(
        panels
    )
    rows = [
        [
            f"{number(one.edges[k])} to {number(one.edges[k + 1])}",
            *(percent(h.shares[k], decimals=2) for h in found.values()),
            f"{percent(one.low[k], decimals=2)} to {percent(one.high[k], decimals=2)}",
        ]
        for k in range(one.shares.size)
    ]
    lead = (
        "Bars of one height are calibrated. High ends mean intervals that are too narrow, a hill in the middle "
        "too wide, a slope forecasts that are too high or too low."
    )
    twin = table(["PIT", *_heads(evidence), "chance allows"], rows, label="PIT histogram")
    return figure("Where in the forecast the outcomes fell", lead, drawing, twin)


def _heads(evidence: Evidence) -> list[str]:
    return [capital(WORDS[side]) for side in evidence.sides]


def _reliability(evidence: Evidence) -> str:
    found = {side: facts.reliability(evidence, side) for side in evidence.sides}
    one = found["before"]
    outside = "; ".join(f"{WORDS[side]} {r.outside} of {r.said.size}" for side, r in found.items())
    lines, band = {side: (r.said, r.frequency) for side, r in found.items()}, (one.said, one.low, one.high)
    panels = [
        ("Frequency by level", charts.reliability(lines, band, title="Share of outcomes below each quantile")),
        ("The same, less the level", charts.gaps(lines, band, title="Share of outcomes below, less the level")),
    ]
    drawing = key(*((f"line {side}", WORDS[side]) for side in found), _chance(), ("line right", "calibrated")) + pair(
        panels
    )
    rows = [
        [
            level(one.said[k]),
            *(percent(r.frequency[k], decimals=2) for r in found.values()),
            f"{percent(one.low[k], decimals=2)} to {percent(one.high[k], decimals=2)}",
        ]
        for k in range(one.said.size)
    ]
    lead = (
        f"How often the outcome was below each quantile, against the quantile's level. Levels beyond chance: {outside}."
    )
    return figure(
        "Reliability of the quantiles",
        lead,
        drawing,
        table(["Level", *_heads(evidence), "chance allows"], rows, label="Reliability of the quantiles"),
    )


def _over_time(evidence: Evidence) -> str:
    share = choices.main_share(evidence)
    if share is None:
        return ""
    found = facts.rolling(evidence, share, points=POINTS)
    lines = {"before": found.before} | ({} if found.after is None else {"after": found.after})
    axis = TimeAxis(found.time)
    said = level(share)
    drawing = key(
        *((f"line {side}", WORDS[side]) for side in lines), _chance(), ("line right", f"{said}, as it should be")
    ) + charts.over_time(
        axis, lines, target=share, band=(found.low, found.high), title=f"Coverage of the {said} interval over time"
    )
    rows = [[plain(moment(t)), *(percent(v[k]) for v in lines.values())] for k, t in enumerate(found.time)]
    lead = (
        f"Share of the last {count(found.window, 'outcome')} inside the {said} interval; in a window chance allows "
        f"{percent(found.low)} to {percent(found.high)}."
    )
    twin = table(["Up to", *_heads(evidence)], rows, label="Coverage over time")
    return figure("Coverage over time", lead, drawing, twin)


def _fan(evidence: Evidence) -> str:
    part = choices.stretch(evidence, last=LAST)
    if part.rows.size == 0:
        return ""
    axis, y = TimeAxis(part.time), evidence.y[part.rows]
    who = evidence.sides[-1]
    rows = {side: evidence.side(side)[part.rows] for side in evidence.sides}
    bands, median = choices.spreads(evidence), place_of(evidence, 0.5)
    other = None
    if who == "after" and bands:
        other = (rows["before"][:, bands[0].lower], rows["before"][:, bands[0].upper])
    drawing = charts.fan(
        axis,
        [(rows[who][:, band.lower], rows[who][:, band.upper]) for band in bands],
        None if median is None else rows[who][:, median],
        other,
        y,
        who=who,
        title="Forecasts and outcomes of the last stretch",
    )
    entries = [
        (f"area {who} {depth}", f"{band.words} {WORDS[who]}")
        for band, depth in zip(bands, ("outer", "inner"), strict=False)
    ]
    entries += [] if median is None else [(f"line thin {who}", "median")]
    entries += [] if other is None else [("line thin before", f"{bands[0].words} {WORDS['before']}")]
    drawing = key(*entries, ("dot outcome", "outcome")) + drawing
    ends = {end for band in bands for end in (band.lower, band.upper)} | ({median} if median is not None else set())
    columns = sorted(ends) or [0]
    heads = [f"{level(evidence.levels[c])} {WORDS[side]}" for side in rows for c in columns]
    cells = [
        [plain(moment(part.time[k])), number(y[k]), *(number(rows[side][k, c]) for side in rows for c in columns)]
        for k in range(y.size)
    ]
    twin = table(["Time", "Outcome", *heads], cells, label="The last stretch")
    lead = f"last {part.rows.size:,} of {count(part.total, 'outcome')}."
    if len(evidence.names) > 1:
        lead = f"Series {name(part.name)}, the worst of {len(evidence.names):,}: its {lead}"
    else:
        lead = f"The {lead}"
    return figure("The last stretch", lead, drawing, twin)


def _sharpness(evidence: Evidence) -> str:
    found = choices.widths(evidence)
    there, lines = found.shares, found.sides
    if not there:
        return ""
    drawing = key(
        *((f"bar {side}", f"mean width {WORDS[side]}") for side in lines), ("line range", "where 8 of 10 lie")
    ) + charts.widths(there, lines, title="Widths of the central intervals")
    heads = [h for side in lines for h in (f"Mean {WORDS[side]}", "10%", "90%")]
    rows = [[level(share), *(number(v[k]) for side in lines for v in lines[side])] for k, share in enumerate(there)]
    twin = table(["Interval", *heads], rows, label="Sharpness")
    lead = "How wide the intervals are. Among calibrated forecasts the narrower are the better."
    return figure("Sharpness", lead, drawing, twin)


# --- pictures of probabilities --------------------------------------------------------------------


def _probabilities(evidence: Evidence) -> str:
    found = {side: facts.reliability(evidence, side) for side in evidence.sides}
    panels = [
        (
            f"{capital(WORDS[side])}: {r.outside} of {r.said.size} beyond chance",
            '<div class="narrow">'
            + charts.bins(
                r.said, r.frequency, (r.low, r.high), r.count, who=side, title=f"Reliability diagram, {WORDS[side]}"
            )
            + "</div>",
        )
        for side, r in found.items()
    ]
    entries = ((f"dot {side}", WORDS[side]) for side in found)
    drawing = key(*entries, ("area chance", "what chance allows"), ("line right", "calibrated")) + pair(panels)
    rows = [
        [
            capital(WORDS[side]),
            percent(r.said[k], decimals=2),
            percent(r.frequency[k], decimals=2),
            f"{percent(r.low[k], decimals=2)} to {percent(r.high[k], decimals=2)}",
            f"{int(r.count[k]):,}",
        ]
        for side, r in found.items()
        for k in range(r.said.size)
    ]
    twin = table(["", "Said", "Came true", "chance allows", "Forecasts"], rows, label="Reliability of probabilities")
    what = "it came" if evidence.kind == "binary" else "a label came"
    lead = f"How often {what}, against the probability that it was given. On the diagonal the two are the same."
    return figure("Reliability of the probabilities", lead, drawing, twin)


def _boldness(evidence: Evidence) -> str:
    found = {side: facts.reliability(evidence, side) for side in evidence.sides}
    edges = np.linspace(0.0, 1.0, BINS + 1)
    parts = {}
    for side, r in found.items():
        places = np.minimum((r.said * BINS).astype(int), BINS - 1)
        parts[side] = np.bincount(places, r.count / r.count.sum(), minlength=BINS)
    top = 1.06 * max(float(part.max()) for part in parts.values())
    panels = [
        (
            capital(WORDS[side]),
            charts.shares(edges, part, who=side, top=top, title=f"Probabilities said, {WORDS[side]}"),
        )
        for side, part in parts.items()
    ]
    rows = [
        [
            f"{percent(edges[k], decimals=0)} to {percent(edges[k + 1], decimals=0)}",
            *(percent(p[k]) for p in parts.values()),
        ]
        for k in range(BINS)
    ]
    twin = table(["Probability", *_heads(evidence)], rows, label="Sharpness")
    lead = "How often each probability was given. Among calibrated forecasts those nearer to 0% and 100% say more."
    return figure("Sharpness", lead, pair(panels), twin)


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
    return ("series", "series") if unit == "series" else ("stretch of time", "stretches of time")


def _promise(evidence: Evidence) -> str:
    found = choices.promise(evidence)
    if found is None:
        return ""
    held = "" if found.held is None else f" Certificates that held before the outcome: {percent(found.held)}."
    if found.rounds:
        lines = {"promised": (found.place, found.promised), "after": (found.place, found.miscalibration)}
        entries = [("line promised", "promised at most"), ("line after", "miscalibration")]
        heads = ["Round", "Promised", "Miscalibration"]
        columns = [found.place, found.promised, found.miscalibration]
        if found.given is not None:
            lines = {"before": (found.place, found.given), **lines}
            entries.append(("line before", "as given, its quantiles alone"))
            heads.append("As given, its quantiles alone")
            columns.append(found.given)
        across, how = "round", "After each outcome, under the bound that was known before it."
    else:
        ends = np.array([found.promised.min(), found.promised.max()])
        middle = found.miscalibration if found.middle is None else found.middle
        lines = {
            "promised": (ends, ends),
            "after": (found.place, found.miscalibration),
            "least": (found.place, middle),
        }
        entries = [("line promised", "the promise"), ("line after", "the worst"), ("line least", "the middle")]
        heads = ["Promised", "The worst", "The middle"]
        columns = [found.promised, found.miscalibration, middle]
        across, how = "promised at most", "All series together, by what was promised: the more outcomes, the less."
    drawing = key(*entries) + charts.promise(lines, across=across, title="Miscalibration against the promised bound")
    rows = [
        [number(float(v[k]), digits=6 if i == 0 else 4) for i, v in enumerate(columns)] for k in range(found.place.size)
    ]
    lead = f"{how} {found.words}{held}"
    return figure("Miscalibration and the promise", lead, drawing, table(heads, rows, label="The promise"))


def _series(evidence: Evidence) -> str:
    if len(evidence.names) < 2:
        return ""
    found = facts.by_series(evidence)
    total = len(found.names)
    many = min(total, MOST_SERIES)
    last = found.error_before if found.error_after is None else found.error_after
    limits = found.limit_before if found.limit_after is None else found.limit_after
    sides = [("before", found.error_before / np.maximum(found.limit_before, 1e-300))]
    if found.error_after is not None and found.limit_after is not None:
        sides.append(("after", found.error_after / np.maximum(found.limit_after, 1e-300)))
    scale = charts.ratio_scale(*(ratio[:many] for _, ratio in sides))
    columns: list[tuple[str, Callable[[float], str], Vector, Vector | None]] = []
    if found.share is not None and found.coverage_before is not None:
        columns.append((f"{level(found.share)} interval covered", percent, found.coverage_before, found.coverage_after))
    columns += [
        ("Calibration error", small, found.error_before, found.error_after),
        ("Chance allows up to", small, limits, None),
        ("Loss", number, found.loss_before, found.loss_after),
    ]
    heads = ["Series", "Error over what chance allows", "Outcomes", *(head for head, _, _, _ in columns)]
    rows = [
        [
            name(found.names[k], limit=40),
            charts.dumbbell({side: float(ratio[k]) for side, ratio in sides}, scale),
            f"{int(found.rows[k]):,}",
            *(
                show(float(was[k])) + ("" if now is None else f" → {show(float(now[k]))}")
                for _, show, was, now in columns
            ),
        ]
        for k in range(many)
    ]
    entries = [(f"dot {side}", WORDS[side]) for side, _ in sides]
    body = table(heads, rows[:FIRST_SERIES], label="Series by series")
    if many > FIRST_SERIES:
        more = table(heads, rows[FIRST_SERIES:], label="More series")
        body += details(f"The next {many - FIRST_SERIES}", more)
    note = ""
    if many < total:
        rest = last[many:] / np.maximum(limits[many:], 1e-300)
        note = (
            f'<p class="note">The {many} worst of {count(total, "series", "series")} are shown; of the others '
            f"{int(np.count_nonzero(rest > 1.0)):,} are beyond what chance allows.</p>"
        )
    lead = "The worst first. Left of the line is what chance allows a calibrated forecaster."
    return (
        f'<section class="part series"><h3>Series by series</h3><p class="soft">{lead}</p>'
        f"{key(*entries)}{body}{note}</section>"
    )
