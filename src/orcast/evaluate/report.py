"""HTML report: a sentence that says what to do, four tiles, the by-horizon picture, then the details."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from orcast.evaluate import plots
from orcast.evaluate.calibration import coverage, error, interval_band, level_name, limit_of, main_share
from orcast.evaluate.evaluation import Evaluation
from orcast.evaluate.losses import difference, loss, loss_name
from orcast.evaluate.references import best_reference
from orcast.evaluate.svg import LIGHT, SHEET, Picture, clean, number, percent, plain, shortened
from orcast.evaluate.tables import Table, by_horizon, by_series
from orcast.evaluate.verdicts import action, headline, verdict
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
Tile = tuple[str, str, str]

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
code{{font-size:.9em;white-space:nowrap}}
.soft,footer{{color:var(--soft);font-size:.9rem}}
.headline{{font-size:clamp(1.25rem,1rem + 1.6vw,1.9rem);line-height:1.25;margin:.8rem 0;padding-left:.9rem;
border-left:6px solid var(--soft);text-wrap:pretty}}
.headline.use{{border-color:var(--good)}}
.headline.avoid{{border-color:var(--bad)}}
.tiles{{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,9.6rem),1fr));gap:.7rem;margin:1.2rem 0}}
.tiles div{{border:1px solid var(--rule);border-radius:6px;padding:.6rem .8rem}}
.tiles dt,.tiles .remark{{font-size:.83rem;color:var(--soft);display:block}}
.tiles dd{{margin:0}}
.tiles .big{{font-size:clamp(1.05rem,4vw,1.3rem);font-weight:600}}
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
@media print{{:root{{{LIGHT}}}h2{{break-before:page}}.chart,.tiles,tr{{break-inside:avoid}}
*{{print-color-adjust:exact}}}}
"""


def html(evaluations: Sequence[Evaluation], *, title: str = TITLE, source: str = "") -> str:
    """Make the report on one model or several as one HTML page without scripts or requests.

    Parameters
    ----------
    evaluations : sequence of Evaluation
        One for each model.
    title : str
        Title of the page.
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
    several = len(models) > 1
    body = "".join(_overview(each, k) for k, each in enumerate(models)) if several else ""
    for k, each in enumerate(models):
        called = f'<h2 id="model-{k + 1}">{name_html(each.model or "forecast")}</h2>' if several else ""
        body += called + model_html(each)
    return page(title or TITLE, where, body or "<p>No forecasts.</p>", f"<p>{FOOT}</p>")


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


def write(path: str | os.PathLike[str], evaluations: Sequence[Evaluation], **options: str) -> None:
    """Write the report to a file.

    Parameters
    ----------
    path : path
        File to write.
    evaluations : sequence of Evaluation
        One for each model.
    **options
        Other parameters of `html`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder) / "report.html", [Evaluation.of([0.2, 0.7], [0, 1])])
    ...     len(list(Path(folder).iterdir()))
    1
    """
    with replacing(path) as temporary:
        temporary.write_text(html(evaluations, **options), encoding="utf-8")


def name_html(text: object, *, limit: int = 48) -> str:
    """User's name, escaped, shortened and isolated from the text direction around it."""
    own = clean(text)
    if not own:
        return '<bdi class="soft">(no name)</bdi>'
    whole = f' title="{plain(shortened(own, 400))}"' if len(own) > limit else ""
    return f"<bdi{whole}>{plain(shortened(own, limit))}</bdi>"


def _sentence(text: str) -> str:
    """Escaped sentence in which the options of the command do not break across lines."""
    return re.sub(r"--[a-z][a-z-]*", r"<code>\g<0></code>", plain(text))


def _overview(evaluation: Evaluation, k: int) -> str:
    """Line of one of several models."""
    called = name_html(evaluation.model or "forecast")
    return f'<p><a href="#model-{k + 1}">{called}</a>: {plain(headline(evaluation))}</p>'


def model_html(evaluation: Evaluation) -> str:
    """Verdict, tiles, pictures and tables of one model."""
    first, *reasons = verdict(evaluation)
    body = f'<p class="headline {CLASSES[action(evaluation)]}">{_sentence(first)}</p>'
    listed = f"<ul>{''.join(f'<li>{_sentence(reason)}</li>' for reason in reasons)}</ul>" if reasons else ""
    if not evaluation.rows:
        return body + listed
    drawn = [f"<figure><h3>{plain(each.title)}</h3>{each.html()}</figure>" for each in _pictures(evaluation)]
    body += _tiles(evaluation) + drawn[0] + f"<h3>Reasons</h3>{listed}" + "".join(drawn[1:])
    return body + _horizons(evaluation) + _series(evaluation)


# --- tiles


def _tiles(evaluation: Evaluation) -> str:
    """At most four numbers; one that would appear twice is shown once."""
    tiles = (_loss_tile, _coverage_tile, _reference_tile, _harm_tile)
    shown = "".join(
        f'<div><dt>{plain(label)}</dt><dd><span class="big">{plain(value)}</span>'
        f'<span class="remark">{plain(remark)}</span></dd></div>'
        for label, value, remark in dict.fromkeys(tile(evaluation) for tile in tiles)
    )
    arrows = '<p class="soft">a → b: base forecast → recalibrated</p>' if len(evaluation.sides) > 1 else ""
    return f'<dl class="tiles">{shown}</dl>{arrows}'


def _gain(evaluation: Evaluation, value: float) -> str:
    """Relative change of a loss; without issue times only the most that it can be."""
    if evaluation.timed:
        return percent(value, sign=True)
    return f"up to {percent(-value)} lower" if value < 0.0 else "not lower"


def _loss_tile(evaluation: Evaluation) -> Tile:
    found = difference(evaluation)
    if found is None:
        mean = float(loss(evaluation).mean())
        return f"Mean {loss_name(evaluation)}", number(mean), f"{evaluation.rows:,} outcomes"
    ends = f"95% interval {percent(found.relative_low, sign=True)} to {percent(found.relative_high, sign=True)}"
    label = f"Change of the {loss_name(evaluation)}"
    return label, _gain(evaluation, found.relative), ends if evaluation.timed else "issue times are missing"


def _coverage_tile(evaluation: Evaluation) -> Tile:
    share = main_share(evaluation)
    if share is None:
        return _error_tile(evaluation)
    low, high = interval_band(evaluation, share)
    covered = _arrow(percent, (coverage(evaluation, share, side) for side in evaluation.sides))
    return f"Coverage of the {level_name(share)} interval", covered, f"chance: {percent(low)} to {percent(high)}"


def _error_tile(evaluation: Evaluation) -> Tile:
    errors = _arrow("{:.2g}".format, (error(evaluation, side) for side in evaluation.sides))
    return "Calibration error", errors, f"chance: up to {limit_of(evaluation, evaluation.sides[-1]):.2g}"


def _reference_tile(evaluation: Evaluation) -> Tile:
    label = "Loss against the best reference"
    best = best_reference(evaluation)
    if best is None:
        return label, number(None), "no reference is available"
    remark = f"{best.name}: {loss_name(evaluation)} {number(best.loss)}"
    return label, _gain(evaluation, best.gain(evaluation.sides[-1])), remark


def _harm_tile(evaluation: Evaluation) -> Tile:
    """Series made worse at the worst horizon, or the calibration error without any to count."""
    table = by_horizon(evaluation)
    change = table.change
    if change is None or (evaluation.horizon is None and len(evaluation.names) == 1):
        return _error_tile(evaluation)
    if len(evaluation.names) == 1:
        return "Horizons made worse", f"{int(change.harmed.sum()):,} of {len(table.labels):,}", "significantly"
    k = int(np.argmax(change.worse / np.maximum(change.series, 1)))
    where = "all rows" if evaluation.horizon is None else f"at horizon {table.labels[k]}, the worst"
    return "Series made worse", f"{change.worse[k]:,} of {change.series[k]:,}", where


# --- pictures and tables


def _pictures(evaluation: Evaluation) -> Iterator[Picture]:
    """Pictures in their order: by horizon first."""
    if evaluation.horizon is not None and evaluation.after is not None:
        yield plots.horizons(evaluation)
    yield plots.reliability(evaluation)
    yield plots.evidence(evaluation)
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


def _columns(found: Table, names: list[str]) -> dict[str, list[str]]:
    """Columns of a table of groups, as text."""
    columns = {found.name.capitalize(): names, "Outcomes": [f"{many:,.0f}" for many in found.rows]}
    if found.share is not None:
        covered = zip(*found.coverage.values(), strict=True)
        columns[f"{level_name(found.share)} interval covered"] = [_arrow(percent, each) for each in covered]
    columns["Loss"] = [_arrow(number, each) for each in zip(*found.loss.values(), strict=True)]
    if found.change is not None:
        pairs = zip(found.change.worse, found.change.series, strict=True)
        columns["Change"] = [percent(float(each), sign=True) for each in found.change.relative]
        if found.change.series.max(initial=0) > 1:
            columns["Series worse"] = [f"{worse:,} of {many:,}" for worse, many in pairs]
    return columns


def _horizons(evaluation: Evaluation) -> str:
    if evaluation.horizon is None:
        return ""
    found = by_horizon(evaluation)
    return f"<h3>By horizon</h3>{table_html(_columns(found, list(found.labels)), 'By horizon')}"


def _series(evaluation: Evaluation) -> str:
    """Series by series, the worst coverage first."""
    if len(evaluation.names) < 2:
        return ""
    found = by_series(evaluation)
    columns = _columns(found, [name_html(each, limit=40) for each in found.labels])
    shown = {heading: cells[:MOST_SERIES] for heading, cells in columns.items()}
    total = len(found.labels)
    title = f"Series, the worst {'first' if total <= MOST_SERIES else f'{MOST_SERIES} of {total:,}'}"
    return f"<details><summary>{title}</summary>{table_html(shown, 'Series')}</details>"
