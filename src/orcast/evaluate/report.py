"""HTML report: a sentence that says what to do, its reasons, pictures, and tables by horizon and series."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from orcast.evaluate import plots
from orcast.evaluate.calibration import level_name, main_share
from orcast.evaluate.evaluation import Evaluation
from orcast.evaluate.svg import LIGHT, SHEET, Picture, clean, number, percent, plain, shortened
from orcast.evaluate.tables import Columns, by_horizon, by_series
from orcast.evaluate.verdicts import alarm_texts, decide, reasons
from orcast.persistence import replacing

__all__ = ["html", "write"]

# The page fetches nothing and runs no script, whatever the names in a file contain.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
TITLE = "Forecast report"
# Largest number of series shown.
MOST_SERIES = 50
CLASSES = {"use": "use", "do not use": "avoid", "not enough data": "undecided"}
FOOT = (
    "Chance bands contain a calibrated forecaster in 95% of cases, by the effective sample size. QCE: squared gaps "
    "between frequency and level, summed over the levels. ECE: mean gap between frequency and probability in bins. "
    "References use only outcomes known when each forecast was issued, with the quantiles of their past errors. "
    "The best reference is the one with the least loss over all rows."
)

DARK = (
    "--paper:#14171b;--ink:#e9e7e2;--soft:#a3abb5;--rule:#30363d;--grid:#262b32;--chance:#454c55;"
    "--before:#c8731a;--after:#a6d2ff;--bad:#ff8a80;--good:#7fd6a0"
)
STYLE = f""":root{{color-scheme:light dark;{LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{DARK}}}}}
*{{box-sizing:border-box}}
body{{margin:0 auto;max-width:62rem;padding:1.5rem clamp(16px,4vw,40px) 3rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans",Arial,sans-serif;
overflow-wrap:break-word}}
h1{{font-size:.95rem;margin:0;color:var(--soft)}}
h2{{font-size:1.4rem;margin:3rem 0 0;padding-top:1rem;border-top:3px solid var(--ink)}}
h3{{font-size:1.08rem;margin:2.2rem 0 .2rem}}
p,li{{margin:.3rem 0}}
figure{{margin:0}}
footer{{margin-top:2.5rem}}
.soft,footer{{color:var(--soft);font-size:.9rem}}
.headline{{font-size:clamp(1.25rem,1rem + 1.6vw,1.9rem);line-height:1.25;margin:.8rem 0;padding-left:.9rem;
border-left:6px solid var(--soft);text-wrap:pretty}}
.headline.use{{border-color:var(--good)}}
.headline.avoid{{border-color:var(--bad)}}
summary{{cursor:pointer;color:var(--soft);padding:.35rem 0}}
.scroll{{overflow-x:auto;border-top:1px solid var(--rule);border-bottom:1px solid var(--rule)}}
table{{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums;width:100%}}
th,td{{padding:.32rem .8rem .32rem 0;text-align:right;white-space:nowrap}}
th:first-child,td:first-child{{text-align:left}}
thead th{{white-space:normal;vertical-align:bottom;border-bottom:1px solid var(--rule)}}
tbody th{{font-weight:400;white-space:normal;min-width:7rem;max-width:16rem;overflow-wrap:anywhere}}
tr>:last-child{{padding-right:0}}
tbody tr+tr>*{{border-top:1px solid var(--grid)}}
a{{color:var(--after)}}
@media (max-width:560px){{.optional{{display:none}}.chart .across.first{{text-anchor:start}}ul{{padding-left:1.2rem}}
table{{font-size:.78rem}}th,td{{padding-right:.5rem}}td{{white-space:normal}}
tbody th{{min-width:3.5rem;max-width:8rem}}}}
@media print{{:root{{{LIGHT}}}h2{{break-before:page}}.chart,tr{{break-inside:avoid}}
*{{print-color-adjust:exact}}}}
"""


def html(evaluations: Sequence[Evaluation], *, source: str = "") -> str:
    """Make the report on one model or several as one HTML page without scripts or requests.

    Parameters
    ----------
    evaluations : sequence of Evaluation
        One for each model.
    source : str
        Origin of the forecasts, such as a file name.

    Examples
    --------
    >>> page = html([Evaluation.of([0.2, 0.7], [0, 1])], source="rain.csv")
    >>> "Not enough data" in page, "<script" in page
    (True, False)
    """
    models = list(evaluations)
    if not all(isinstance(each, Evaluation) for each in models):
        raise TypeError("expected a sequence of Evaluation, got something else in it")
    where = f'<p class="soft">Source: {name_html(source, limit=120)}</p>' if source else ""
    several, first, body = len(models) > 1, "", ""
    for k, each in enumerate(models):
        called = name_html(each.model or "forecast")
        first += f'<p><a href="#model-{k + 1}">{called}</a>: {plain(decide(each)[1])}</p>'
        body += (f'<h2 id="model-{k + 1}">{called}</h2>' if several else "") + model_html(each)
    return page(TITLE, where, (first if several else "") + body or "<p>No forecasts.</p>", f"<p>{FOOT}</p>")


def page(title: str, under: str, body: str, foot: str = "") -> str:
    """Make a page of parts in HTML, without scripts or requests; only the title is escaped here."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{plain(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f'<link rel="icon" href="data:,"><title>{plain(shortened(title, 120))}</title>'
        f"<style>{STYLE}{SHEET}</style></head>\n<body><header><h1>{plain(title)}</h1>{under}</header>"
        f"<main>{body}</main><footer>{foot}</footer></body></html>\n"
    )


def write(path: str | os.PathLike[str], evaluations: Sequence[Evaluation], *, source: str = "") -> None:
    """Write the report to a file.

    Parameters
    ----------
    path : path
        File to write.
    evaluations, source
        As of `html`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/report.html", [Evaluation.of([0.2, 0.7], [0, 1])])
    ...     os.listdir(folder)
    ['report.html']
    """
    with replacing(path) as temporary:
        temporary.write_text(html(evaluations, source=source), encoding="utf-8")


def name_html(text: object, *, limit: int = 48) -> str:
    """User's name, escaped, shortened and isolated from the text direction around it."""
    own = clean(text)
    if not own:
        return '<bdi class="soft">(no name)</bdi>'
    whole = f' title="{plain(shortened(own, 400))}"' if len(own) > limit else ""
    return f"<bdi{whole}>{plain(shortened(own, limit))}</bdi>"


def model_html(evaluation: Evaluation, evidence: Picture | None = None) -> str:
    """Verdict, pictures and tables of one model; with the `evidence` of a monitor its alarms are listed elsewhere."""
    decision, first = decide(evaluation)
    items, (heading, texts) = [plain(reason) for reason in reasons(evaluation)], alarm_texts(evaluation)
    if texts and evidence is None:
        several = _list_html([plain(text) for text in texts])
        items.insert(2, f"{plain(heading)}: {several if len(texts) > 1 else plain(texts[0]) + '.'}")
    body = f'<p class="headline {CLASSES[decision]}">{plain(first)}</p>{_list_html(items)}'
    if not evaluation.rows:
        return body
    pictures = _pictures(evaluation, evidence)
    drawn = (f"<figure><h3>{plain(each.title)}</h3>{each.html()}</figure>" for each in pictures)
    body += "".join(drawn)
    if evaluation.horizon is not None:
        table = by_horizon(evaluation)
        steps = [f"{step:.12g}" for step in table["horizon"]]
        body += f"<h3>By horizon</h3>{table_html(_columns(evaluation, table, 'Horizon', steps), 'By horizon')}"
    if len(evaluation.names) > 1:
        table = by_series(evaluation)
        columns = _columns(evaluation, table, "Series", [name_html(each, limit=40) for each in table["series"]])
        shown = {heading: cells[:MOST_SERIES] for heading, cells in columns.items()}
        total = len(table["series"])
        title = f"Series, the worst {'first' if total <= MOST_SERIES else f'{MOST_SERIES} of {total:,}'}"
        body += f"<details><summary>{title}</summary>{table_html(shown, 'Series')}</details>"
    return body


# --- pictures and tables


def _list_html(items: Iterable[str]) -> str:
    """List of parts in HTML, without those that are empty."""
    found = "".join(f"<li>{item}</li>" for item in items if item)
    return f"<ul>{found}</ul>" if found else ""


def _pictures(evaluation: Evaluation, evidence: Picture | None) -> Iterator[Picture]:
    yield plots.reliability(evaluation)
    yield evidence or plots.evidence(evaluation)
    if evaluation.kind == "quantiles":
        yield plots.fan(evaluation)


def _arrow(show: Callable[[float], str], values: Iterable[float]) -> str:
    return " →\N{NO-BREAK SPACE}".join(show(float(value)) for value in values)


def table_html(columns: dict[str, list[str]], label: str) -> str:
    """Table in a box that scrolls; cells are HTML, the first of a row names it."""
    head = "".join(f'<th scope="col">{plain(heading)}</th>' for heading in columns)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>'
        for row in zip(*columns.values(), strict=True)
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{plain(label)}"><table><thead>'
        f"<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _columns(evaluation: Evaluation, found: Columns, name: str, names: Sequence[str]) -> dict[str, list[str]]:
    """Columns of a table of groups, as text."""
    columns = {name: list(names), "Outcomes": [f"{many:,}" for many in found["outcomes"]]}
    share = main_share(evaluation.levels)
    covered = "" if share is None else f"{level_name(share)} interval covered"
    for heading, values, show in ((covered, "coverage", percent), ("Loss", "loss", number)):
        if heading:
            rows = zip(*(found[f"{values}_{side}"] for side in evaluation.sides), strict=True)
            columns[heading] = [_arrow(show, each) for each in rows]
    if "change" in found:
        columns["Change"] = [percent(float(each), sign=True) for each in found["change"]]
        if len(evaluation.names) > 1:
            pairs = zip(found["worse"], found["series"], strict=True)
            columns["Series worse"] = [f"{worse:,} of {many:,}" for worse, many in pairs]
    return columns
