"""The page of the contest: every class, both leagues, every stream, every loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from orcast import __version__
from orcast.contest.leagues import LEAGUE_NAMES
from orcast.contest.methods import LAST, ORCAST, RAW, TRACKED, Method
from orcast.contest.run import Contest
from orcast.contest.tables import (
    BEYOND,
    COLUMNS,
    OneStream,
    Standing,
    captions,
    columns_of,
    failures,
    markdown,
    one_by_one,
    result_table,
    standings,
    summary,
    verdict,
)
from orcast.report.axes import around, log_scale, number_axis
from orcast.report.html import details, document, table
from orcast.report.pictures import Mark, Picture
from orcast.report.svg import draw, key
from orcast.report.text import NOTHING, count, name, plain

TITLE = "The contest"
# Dots beyond are drawn at the edge: a method that issues far bounds would press all others together.
FARTHEST = 2.0
# Lines that are the same in both leagues, and how dots are coloured and called.
OWN = {ORCAST, RAW, LAST}
ROLES = {ORCAST: ("after", "orcast"), RAW: ("given", RAW), LAST: ("outcome", LAST)}
OTHERS = {1: ("before", "rivals on the expert as given"), 2: ("tracked", "rivals on the tracked expert, and itself")}


def write(folder: str | Path, contest: Contest) -> list[Path]:
    """The page, the tables in Markdown and each of them as CSV; returns the files, and the folder of the latter."""
    place = Path(folder)
    each = place / "tables"
    each.mkdir(parents=True, exist_ok=True)
    for old in each.glob("*.csv"):
        old.unlink()
    paths = [place / "contest.html", place / "tables.md"]
    for path, text in zip(paths, (html(contest), in_markdown(contest)), strict=True):
        path.write_text(text, encoding="utf-8")
    found = standings(contest.rows, contest.methods)
    for shown in (summary(found), *map(result_table, found)):
        shown.write(each)
    return [*paths, each]


def in_markdown(contest: Contest) -> str:
    """The tables of all classes."""
    found = standings(contest.rows, contest.methods)
    return markdown(found, contest.methods, failures(one_by_one(contest.rows)))


def html(contest: Contest) -> str:
    """One HTML page that needs nothing else."""
    found = standings(contest.rows, contest.methods)
    streams = one_by_one(contest.rows)
    played = sum(len(s.rows) for s in streams)
    worse = sum(s.worse_than_raw for s in streams)
    top = (
        f'<p class="soft">{count(len(streams), "stream")}, {count(len(contest.methods), "method")}, '
        f"{count(played, 'line')}; orcast {plain(__version__)} with its default settings. "
        f"On {count(worse, 'stream')} orcast's loss is above that of the expert as given.</p>"
    )
    lead = _summary(found)
    classes = "".join(
        _class(kind, [s for s in found if s.kind == kind]) for kind in dict.fromkeys(s.kind for s in found)
    )
    body = (
        f"{classes}<h2>How to read it</h2>{_how(contest.methods)}"
        f"<h2>Every stream</h2>{''.join(_stream(s) for s in streams)}"
        f"<h2>Who played</h2>{_methods(contest.methods)}<h2>Sources</h2>{_sources(streams)}"
    )
    header = f"<header><h1>{TITLE}</h1>{top}{lead}</header>"
    return document(TITLE, f"{header}<main>{body}</main><footer><p>orcast contest</p></footer>")


def _summary(found: list[Standing]) -> str:
    """All classes in one table, places that are not the first in red."""
    shown = summary(found)
    place = shown.columns.index("orcast's place")
    rows = [[plain(cell) for cell in row] for row in shown.shown()]
    for row in rows:
        if not row[place].startswith("1 "):
            row[place] = _bad(row[place])
    return _tight(table([plain(column) for column in shown.columns], rows, label=shown.title))


def _verdict(standing: Standing) -> str:
    text = plain(verdict(standing))
    return text if standing.place() == 1 else _bad(text)


def _bad(text: str) -> str:
    """Words in red, of text that is HTML."""
    return f'<span class="bad">{text}</span>'


def _class(kind: str, both: Sequence[Standing]) -> str:
    parts = [f'<h2>{plain(kind)} <span class="soft">({count(both[0].streams, "stream")})</span></h2>']
    for standing in both:
        parts.append(f'<section class="part"><h3>On {plain(LEAGUE_NAMES[standing.league])}</h3>')
        chance = f"A calibrated forecaster would have a gap of {standing.lines[0].values['chance']:.4f} by chance."
        parts.append(f'<p class="note">{_verdict(standing)} {chance}</p>{_standing(standing)}</section>')
    picture = _picture(kind, both)
    caption = f"<figcaption><h3>{plain(picture.title)}</h3><p>{plain(picture.finding)}</p></figcaption>"
    parts.append(f"<figure>{caption}{key([picture])}{draw(picture)}</figure>")
    return "".join(parts)


def _standing(standing: Standing) -> str:
    columns = [(column, text) for column, text in columns_of(standing) if column.field != "chance"]
    most = max(line.rank.streams for line in standing.lines)
    rows = []
    for line in standing.lines:
        shown = f"<b>{name(line.method)}</b>" if line.method == ORCAST else name(line.method)
        if line.rank.streams < most:
            shown += f' <span class="soft">({line.rank.streams} of {most} streams)</span>'
        rank = f"{line.rank.mean:.2f}"
        if line.rank.streams > 1:
            rank += f' <span class="soft">{line.rank.low:.1f} to {line.rank.high:.1f}</span>'
        rows.append(
            [shown, rank, f"{line.beyond.mean:.2f}", *(_number(line.values[c.field], c.form) for c, _ in columns)]
        )
    heads = ["method", "joint rank, 90% interval", BEYOND, *(plain(text) for _, text in columns)]
    return _tight(table(heads, rows, label=standing.title))


def _tight(inside: str) -> str:
    """A table of many columns."""
    return f'<div class="tight">{inside}</div>'


def _texts(inside: str) -> str:
    """A table of words."""
    return f'<div class="texts">{inside}</div>'


def _number(value: float, form: str) -> str:
    return f"{value:{form}}" if np.isfinite(value) else NOTHING


def _picture(kind: str, both: Sequence[Standing]) -> Picture:
    """Loss / raw against gap, a dot a method; what is far off is at the edge."""
    first = columns_of(both[0])
    loss_name, gap_name = (next(text for c, text in first if c.field == field) for field in ("loss", "gap"))
    everything = [(s.league, line) for s in both for line in s.lines]
    losses = np.minimum([line.values["loss"] for _, line in everything], FARTHEST)
    gaps = np.array([line.values["gap"] for _, line in everything])
    groups: dict[tuple[str, str], list[int]] = {}
    for i, (league, line) in enumerate(everything):
        if league == 1 or line.method not in OWN:
            groups.setdefault(ROLES.get(line.method, OTHERS[league]), []).append(i)
    marks = []
    for (role, label), at in groups.items():
        hover = tuple(
            f"{everything[i][1].method}, on {LEAGUE_NAMES[everything[i][0]]}: {loss_name} "
            f"{everything[i][1].values['loss']:.3f}, {gap_name} {gaps[i]:.4f}"
            for i in at
        )
        marks.append(Mark("dot", role, gaps[at], losses[at], label=label, hover=hover))
    chance = both[0].lines[0].values["chance"]
    scale_x, scale_y = log_scale(np.append(gaps, chance)), around(losses, [1.0])
    as_raw = Mark("line", "target", np.array([scale_x.low, scale_x.high]), np.array([1.0, 1.0]),
                label="loss of the expert as given")  # fmt: skip
    by_chance = Mark("line", "promised", np.array([chance, chance]), np.array([scale_y.low, scale_y.high]),
                     label="gap of a calibrated forecaster, by chance")  # fmt: skip
    far = sum(line.values["loss"] > FARTHEST for _, line in everything)
    note = f"; {count(far, 'dot')} beyond {FARTHEST:g} drawn there" if far else ""
    return Picture(
        f"{kind}: {loss_name} against {gap_name}",
        f"A dot is a method over all streams of the class; down and left is better{note}. Point at a dot for its name.",
        number_axis(gap_name, scale_x),
        number_axis(loss_name, scale_y),
        (*marks, as_raw, by_chance),
        height=380,
    )


def _stream(stream: OneStream) -> str:
    about = stream.about
    columns = [c for c in COLUMNS if any(np.isfinite(row[c.field]) for row in stream.rows)]
    events = about["kind"] == "binary"
    rows = []
    for row in stream.rows:
        worse = stream.losses.get((row["method"], row["league"]))
        said = "" if row["method"] == ORCAST else _bad(f"orcast: {plain(worse)}") if worse else "orcast is ahead"
        shown = f"<b>{name(row['method'])}</b>" if row["method"] == ORCAST else name(row["method"])
        league = NOTHING if row["method"] in OWN else "tracked" if row["league"] == 2 else "as given"
        rows.append([shown, league, said, *(_number(row[c.field], c.form) for c in columns)])
    names = (plain((c.event if events else c.name) or c.name) for c in columns)
    heads = ["method", "expert", "beside orcast", *names]
    failed = "".join(
        f'<p class="note">{_bad(name(row["method"]) + " failed: " + plain(row["error"]))}</p>' for row in stream.errors
    )
    body = (
        f'<p class="note">{plain(about["source"])}. The expert knew: {plain(about["knew"])}.</p>'
        f"{_tight(table(heads, rows, label=about['stream']))}{failed}"
    )
    behind = len({method for method, _ in stream.losses})
    summary = f"{about['stream']} ({about['kind']}, {count(about['rows'], 'row')}, {count(about['games'], 'game')})"
    if stream.worse_than_raw:
        summary += f": orcast is WORSE than the expert as given, {stream.losses[RAW, 1]}"
    elif behind:
        summary += f": in loss or gap behind {count(behind, 'other')}"
    folded = details(summary, body)
    return folded.replace("<summary>", '<summary class="bad">', 1) if stream.worse_than_raw else folded


def _how(methods: Mapping[str, Method]) -> str:
    return (
        "<p>Every method plays every stream of its kind, row by row, and sees an outcome when it became known, no "
        "sooner. A game is one series at one horizon. <b>Loss / raw</b>: pinball loss (events: Brier score) as a part "
        "of that of the expert as given, on the same outcomes; geometric mean over games and streams. "
        "<b>Coverage gap</b>: mean distance of the share of outcomes below a quantile from its level (events: expected "
        "calibration error). <b>By chance</b>: the gap of a calibrated forecaster on games as long, whose errors "
        "overlap as these do. <b>Joint rank</b>: the mean of the ranks in gap and in loss, over the streams; the "
        "interval holds 90% of what streams that are drawn again, with replacement, would give. <b>Beyond chance</b>: "
        "the joint rank if gaps below that of chance count as that of chance, since a smaller one tells of no better "
        "calibration. "
        "Methods that need bounds where a game has none are given those of all that is said and comes in it, wider by "
        "half on either side: closer than anyone could have named them before. "
        "Against a Nature each method meets outcomes of its own, and the expert is measured on the same.</p>"
        f"<p>{plain(captions(methods))}</p>"
        "<p>The <b>tracked expert</b> is what a default game has learnt of the expert before its guarantee has a say: "
        "with it rivals have the same memory of recent errors that orcast has.</p>"
    )


def _methods(methods: Mapping[str, Method]) -> str:
    rows = [[name(m.name), plain(m.reference) or NOTHING, plain(m.knows)] for m in methods.values()]
    rows.append([name(TRACKED), "orcast's learners without its last layer", plain(methods[ORCAST].knows)])
    return _texts(table(["method", "reference", "what it is told beside the forecast"], rows, label="Methods"))


def _sources(streams: Sequence[OneStream]) -> str:
    found: dict[str, list[str]] = {}
    for stream in streams:
        found.setdefault(stream.about["source"], []).append(stream.about["stream"])
    rows = [[plain(source), str(len(names)), plain(", ".join(names))] for source, names in found.items()]
    return _texts(table(["source", "streams", "which"], rows, label="Sources"))
