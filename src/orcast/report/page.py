"""HTML report: a sentence that says what to do, four tiles, the by-horizon picture, then the details."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from orcast import evidence as facts
from orcast import plots
from orcast.evidence import Evidence
from orcast.evidence.accuracy import loss_name
from orcast.evidence.statistics import level_name, limit_of, main_shares
from orcast.plots import Picture
from orcast.plots.drawing import Vector
from orcast.plots.text import count, name, number, percent, plain, shortened
from orcast.report.style import STYLE

# The page fetches nothing and runs no script, whatever the names in a file contain.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
TITLE = "Forecast report"
# Largest numbers of models and of series shown.
MOST_MODELS, MOST_SERIES = 20, 50
CLASSES = {"use": "use", "do not use": "avoid", "not enough data": "undecided"}
Tile = tuple[str, str, str]


def html(evidences: Sequence[Evidence], *, title: str = TITLE, source: str = "") -> str:
    """Make the report on one model or several as one HTML page without scripts or requests.

    Parameters
    ----------
    evidences : sequence of Evidence
        One for each model.
    title : str
        Title of the page.
    source : str
        Origin of the forecasts, such as a file name.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> import numpy as np
    >>> from orcast.evidence import Evidence
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> narrow, right = np.tile([-1.0, 0.0, 1.0], (500, 1)), np.tile([-1.64, 0.0, 1.64], (500, 1))
    >>> evidence = Evidence.of(narrow, y, after=right, levels=[0.05, 0.5, 0.95], model="net", timed=True)
    >>> page = html([evidence], source="net.csv")
    >>> "Use the recalibrated forecasts" in page, "<script" in page
    (True, False)
    """
    models = list(evidences)
    if not all(isinstance(each, Evidence) for each in models):
        raise TypeError("expected a sequence of Evidence, got something else in it")
    where = f'<p class="soft">Source: {name(source, limit=120)}</p>' if source else ""
    head = f"<header><h1>{plain(title) or TITLE}</h1>{where}</header>"
    several = len(models) > 1
    body = "".join(_overview(each, k) for k, each in enumerate(models)) if several else ""
    for k, each in enumerate(models[:MOST_MODELS]):
        called = f'<h2 id="model-{k + 1}">{_called(each)}</h2>' if several else ""
        body += called + _model(each)
    if len(models) > MOST_MODELS:
        body += f'<p class="soft">Details of the first {MOST_MODELS} of {len(models):,} models are shown.</p>'
    foot = (
        "Chance bands contain a calibrated forecaster in 95% of cases, by the effective sample size. QCE: squared gaps "
        "between frequency and level, summed over the levels. ECE: mean gap between frequency and probability in bins. "
        "References use only outcomes known when each forecast was issued, with the quantiles of their past errors. "
        "The best reference so far is the one with the least loss over the last rounds known then."
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{plain(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f'<link rel="icon" href="data:,"><title>{plain(shortened(title, 120)) or TITLE}</title>'
        f"<style>{STYLE}</style></head>\n<body>{head}<main>{body or '<p>No forecasts.</p>'}</main>"
        f"<footer><p>{foot}</p></footer></body></html>\n"
    )


def write(path: str | os.PathLike[str], evidences: Sequence[Evidence], *, title: str = TITLE, source: str = "") -> None:
    """Write the report to a file; parameters as in `html`.

    Examples
    --------
    >>> import tempfile
    >>> from orcast.evidence import Evidence
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder) / "report.html", [Evidence.of([0.2, 0.7], [0, 1])])
    ...     len(list(Path(folder).iterdir()))
    1
    """
    Path(path).write_text(html(evidences, title=title, source=source), encoding="utf-8")


def _called(evidence: Evidence) -> str:
    return name(evidence.model) if evidence.model else "<bdi>forecast</bdi>"


def _overview(evidence: Evidence, k: int) -> str:
    """Line of one of several models."""
    called = f'<a href="#model-{k + 1}">{_called(evidence)}</a>' if k < MOST_MODELS else _called(evidence)
    return f"<p>{called}: {plain(facts.headline(evidence))}</p>"


def _model(evidence: Evidence) -> str:
    first, *reasons = facts.verdict(evidence)
    body = f'<p class="headline {CLASSES[facts.action(evidence)]}">{plain(first)}</p>'
    listed = f"<ul>{''.join(f'<li>{plain(reason)}</li>' for reason in reasons)}</ul>" if reasons else ""
    if not evidence.rows:
        return body + listed
    drawn = list(_pictures(evidence))
    body += _tiles(evidence) + _figure(drawn[0]) + f"<h3>Reasons</h3>{listed}"
    body += "".join(map(_figure, drawn[1:]))
    return body + _numbers(evidence) + "".join(_groups(evidence)) + _series(evidence)


# --- tiles


def _tiles(evidence: Evidence) -> str:
    """The four numbers that matter."""
    rows = (_loss_tile, _coverage_tile, _reference_tile, _harm_tile)
    tiles = "".join(
        f'<div><dt>{plain(label)}</dt><dd><span class="big">{plain(value)}</span>'
        f'<span class="remark">{plain(remark)}</span></dd></div>'
        for label, value, remark in (tile(evidence) for tile in rows)
    )
    return f'<dl class="tiles">{tiles}</dl>'


def _up_to(evidence: Evidence, value: float) -> str:
    return ("" if evidence.timed else "up to ") + percent(value, sign=True)


def _loss_tile(evidence: Evidence) -> Tile:
    found, label = facts.difference(evidence), f"Change of the {loss_name(evidence)}"
    if found is None:
        mean = float(facts.loss(evidence).mean())
        return f"Mean {loss_name(evidence)}", number(mean), count(evidence.rows, "outcome")
    ends = f"95% interval {percent(found.relative_low, sign=True)} to {percent(found.relative_high, sign=True)}"
    return label, _up_to(evidence, found.relative), ends if evidence.timed else "issue times are missing"


def _coverage_tile(evidence: Evidence) -> Tile:
    share = facts.main_share(evidence)
    if share is None:
        return _error_tile(evidence)
    low, high = facts.interval_band(evidence, share)
    covered = _arrow(evidence, lambda side: percent(facts.coverage(evidence, share, side)))
    return f"Coverage of the {level_name(share)} interval", covered, f"chance: {percent(low)} to {percent(high)}"


def _error_tile(evidence: Evidence) -> Tile:
    limit = limit_of(evidence, evidence.sides[-1])
    errors = _arrow(evidence, lambda side: f"{facts.error(evidence, side):.2g}")
    return "Calibration error", errors, f"chance: up to {limit:.2g}"


def _reference_tile(evidence: Evidence) -> Tile:
    best = next(iter(facts.reference_scores(evidence)), None)
    if best is None:
        return "Against a simple reference", number(None), "no reference is available"
    remark = f"{best.name}: {loss_name(evidence)} {number(best.loss)}"
    return "Loss against the best reference", _up_to(evidence, best.gain(evidence.sides[-1])), remark


def _harm_tile(evidence: Evidence) -> Tile:
    """Series made worse at the worst horizon, or the calibration error without any to count."""
    table = facts.by_horizon(evidence)
    change = table.change
    if change is None or (evidence.horizon is None and len(evidence.names) == 1):
        return _error_tile(evidence)
    if len(evidence.names) == 1:
        harmed = int(change.harmed.sum())
        return "Horizons made worse", f"{harmed:,} of {len(table.labels):,}", "significantly"
    k = int(np.argmax(change.worse / np.maximum(change.series, 1)))
    where = "all rows" if evidence.horizon is None else f"at horizon {table.labels[k]}, the worst"
    return "Series made worse", f"{change.worse[k]:,} of {change.series[k]:,}", where


def _arrow(evidence: Evidence, show: Callable[[str], str]) -> str:
    return " → ".join(show(side) for side in evidence.sides)


# --- pictures


def _figure(picture: Picture) -> str:
    return f"<figure style='margin:0'><h3>{plain(picture.title)}</h3>{picture.html()}</figure>"


def _pictures(evidence: Evidence) -> Iterator[Picture]:
    """Pictures in their order: by horizon first."""
    share = facts.main_share(evidence)
    if evidence.horizon is not None and evidence.after is not None:
        yield plots.horizons(evidence)
    if evidence.horizon is not None and share is not None:
        yield plots.coverage(evidence)
    if evidence.kind == "quantiles":
        if share is not None:
            yield plots.rolling(evidence)
        yield plots.fan(evidence)
        yield plots.pit(evidence)
    yield plots.reliability(evidence)
    if facts.guarantee_check(evidence) is not None and len(evidence.names) == 1 and not evidence.overlap:
        yield plots.guarantee(evidence)


# --- tables


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], label: str) -> str:
    """Table in a box that scrolls; cells are HTML, the first of a row names it."""
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>' for row in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{plain(label)}"><table><thead>'
        f"<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _numbers(evidence: Evidence) -> str:
    """Coverage, width, calibration error and losses, before and after."""
    rows: list[list[str]] = []

    def add(label: str, show: Callable[[float], str], measure: Callable[[str], float], chance: str = "") -> None:
        cells = [show(measure(side)) for side in evidence.sides]
        rows.append([plain(label), *cells, *([] if len(cells) > 1 else [number(None)]), chance or number(None)])

    for share in main_shares(evidence):
        low, high = facts.interval_band(evidence, share)
        interval = f"{level_name(share)} interval"
        band = f"{percent(low)} to {percent(high)}"
        add(f"Coverage of the {interval}", percent, lambda side, s=share: facts.coverage(evidence, s, side), band)  # type: ignore[misc]
        add(f"Mean width of the {interval}", number, lambda side, s=share: facts.width(evidence, s, side))  # type: ignore[misc]
    limit = f"up to {number(limit_of(evidence, evidence.sides[-1]))}"
    add("Calibration error", number, lambda side: facts.error(evidence, side), limit)
    add(f"Mean {loss_name(evidence)}", number, lambda side: float(facts.loss(evidence, side).mean()))
    for each in facts.reference_scores(evidence):
        label = f"Loss against {number(each.loss)} of {each.name}"
        add(label, lambda gain: percent(gain, sign=True), each.gain)
    return "<h3>Numbers</h3>" + _table(["", "Base forecast", "Recalibrated", "By chance"], rows, "Numbers")


def _groups(evidence: Evidence) -> Iterator[str]:
    """Tables by horizon and by the groups that were asked for."""
    tables = [facts.by_horizon(evidence)] if evidence.horizon is not None else []
    tables += [facts.by_group(evidence, grouping) for grouping in evidence.by if grouping.name != "horizon"]
    for found in tables:
        heads = [plain(found.name.capitalize()), "Outcomes"]
        columns = [[plain(label) for label in found.labels], [f"{many:,.0f}" for many in found.rows]]
        if found.share is not None:
            heads.append(f"{level_name(found.share)} interval covered")
            columns.append(_arrows(found.coverage, percent))
        heads.append("Loss")
        columns.append(_arrows(found.loss, number))
        if found.change is not None:
            heads += ["Change", "Series worse"]
            columns.append([percent(v, sign=True) for v in found.change.relative])
            pairs = zip(found.change.worse, found.change.series, strict=True)
            columns.append([f"{worse:,} of {many:,}" for worse, many in pairs])
        title = f"By {found.name}"
        yield f"<h3>{plain(title)}</h3>{_table(heads, list(zip(*columns, strict=True)), title)}"


def _arrows(sides: dict[str, Vector], show: Callable[[float], str]) -> list[str]:
    return [" → ".join(show(float(value)) for value in values) for values in zip(*sides.values(), strict=True)]


def _series(evidence: Evidence) -> str:
    """Series by series, the most miscalibrated first."""
    if len(evidence.names) < 2:
        return ""
    found = facts.by_series(evidence)
    side = evidence.sides[-1]
    heads, columns = ["Series", "Outcomes"], [[name(each, limit=40) for each in found.names]]
    columns.append([f"{many:,.0f}" for many in found.rows])
    if found.coverage:
        heads.append(f"{level_name(found.share or 0.0)} interval covered")
        columns.append(_arrows(found.coverage, percent))
    heads += ["Calibration error", "By chance up to", "Loss"]
    columns += [_arrows(found.error, number), [number(v) for v in found.limit[side]], _arrows(found.loss, number)]
    rows = list(zip(*(column[:MOST_SERIES] for column in columns), strict=True))
    total = len(found.names)
    title = f"Series, the most miscalibrated {'first' if total <= MOST_SERIES else f'{MOST_SERIES} of {total:,}'}"
    return f"<details><summary>{title}</summary>{_table(heads, rows, 'Series')}</details>"
