"""The report: each model from the verdict in sentences down to the table of its series."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orcast import evidence as facts
from orcast.evidence import Evidence
from orcast.evidence.statistics import level_name
from orcast.report.html import document, keys, table
from orcast.report.sections import sections
from orcast.report.text import capital, count, name, number, percent, plain, shortened, small

Vector = NDArray[np.float64]

# So many models have a sentence at the top, a section of their own, a row in the table.
MOST_LINES, MOST_MODELS, MOST_ROWS = 5, 20, 200


def html(evidences: Sequence[Evidence], *, title: str = "How calibrated are these forecasts?", source: str = "") -> str:
    """The report on one model or several, as one HTML page that needs nothing else.

    `source` says where the forecasts came from, a file's name for instance.

    >>> import numpy as np
    >>> from orcast.evidence import Evidence
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> narrow, right = np.tile([-1.0, 0.0, 1.0], (500, 1)), np.tile([-1.64, 0.0, 1.64], (500, 1))
    >>> page = html([Evidence.of(narrow, y, after=right, levels=[0.05, 0.5, 0.95], model="net")], source="net.csv")
    >>> "The 90% interval covered" in page, "<script" in page
    (True, False)
    """
    models = list(evidences)
    if not all(isinstance(each, Evidence) for each in models):
        raise TypeError("expected a sequence of Evidence, got something else in it")
    where = f" Source: {name(source, limit=120)}." if source else ""
    if len(models) == 1:
        only = models[0]
        model = f" Model: {name(only.model)}." if only.model else ""
        top = f'<p class="soft">{_amount(only)}.{model}{where}</p>'
        body = _model(only)
    else:
        top = f'<p class="soft">{count(len(models), "model")}.{where}</p>'
        body = _models(models)
    header = f"<header><h1>{plain(title) or 'Report'}</h1>{top}{_assumptions(models)}</header>"
    foot = (
        "<p>What chance allows: where a calibrated forecaster stays 19 times out of 20 with as many outcomes. "
        "QCE: the squared gaps between frequency and level, summed over the levels. "
        "ECE: the mean gap between frequency and probability, in bins. "
        "Pinball loss and Brier score: the lower, the more accurate.</p>"
    )
    return document(shortened(title, 120) or "Report", f"{header}<main>{body}</main><footer>{foot}</footer>")


def write(
    path: str | os.PathLike[str],
    evidences: Sequence[Evidence],
    *,
    title: str = "How calibrated are these forecasts?",
    source: str = "",
) -> None:
    """Write the report to a file.

    >>> import tempfile
    >>> from orcast.evidence import Evidence
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(Path(folder) / "report.html", [Evidence.of([0.2, 0.7], [0, 1])])
    ...     len(list(Path(folder).iterdir()))
    1
    """
    page = html(evidences, title=title, source=source)
    Path(path).write_text(page, encoding="utf-8")


def _assumptions(models: Sequence[Evidence]) -> str:
    """What counts as known when; most often the same for all models."""
    said = dict.fromkeys(sentence for each in models for sentence in facts.assumptions(each))
    return "".join(f'<p class="assumption">{plain(sentence)}</p>' for sentence in said)


# --- several models -------------------------------------------------------------------------------


def _models(models: Sequence[Evidence]) -> str:
    if not models:
        return '<div class="verdict"><p>There are no forecasts to judge.</p></div>'
    shown = models[:MOST_MODELS]
    lines = "".join(f"<p>{_called(each)}: {_lower(plain(facts.headline(each)))}</p>" for each in models[:MOST_LINES])
    if len(models) > MOST_LINES:
        lines += f"<p>And {count(len(models) - MOST_LINES, 'more model')}, in the table.</p>"
    rows = []
    for i, each in enumerate(models[:MOST_ROWS]):
        share = facts.main_share(each) if each.rows else None
        covered = [] if share is None else [facts.coverage(each, share, side) for side in each.sides]
        errors = [facts.error(each, side) for side in each.sides] if each.rows else []
        title = f'<a href="#model-{i + 1}">{_called(each)}</a>' if i < len(shown) else _called(each)
        inside = number(None) if share is None else f"{level_name(share)} interval: {_both(covered, percent)}"
        rows.append([title, f"{each.rows:,}", inside, _both(errors, small), _change(each)])
    heads = ("Model", "Outcomes", "Covered", "Calibration error", "Change of the loss")
    body = f'<div class="verdict several">{lines}</div><section class="part"><h3>All models</h3>'
    body += table(heads, rows, label="All models") + "</section>"
    for i, each in enumerate(shown):
        body += f'<h2 id="model-{i + 1}">{_called(each)}</h2><p class="soft">{_amount(each)}.</p>{_model(each)}'
    if len(models) > len(shown):
        body += (
            f'<p class="note">Of {count(len(models), "model")} the first {MOST_MODELS} have a section of their own.</p>'
        )
    return body


def _called(evidence: Evidence) -> str:
    return name(evidence.model) if evidence.model else "<bdi>forecast</bdi>"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _both(values: Sequence[float], show: Callable[[float], str]) -> str:
    """Before, and after if there is one."""
    return " → ".join(map(show, values)) or number(None)


def _change(evidence: Evidence) -> str:
    found = facts.difference(evidence)
    if found is None or not np.isfinite(found.relative):
        return number(None)
    inside = ""
    if np.isfinite(found.relative_low):
        inside = f" ({percent(found.relative_low, sign=True)} to {percent(found.relative_high, sign=True)})"
    return f"{found.name} {percent(found.relative, sign=True)}{inside}"


def _amount(evidence: Evidence) -> str:
    outcomes = count(evidence.rows, "outcome")
    return outcomes if len(evidence.names) <= 1 else f"{outcomes} of {count(len(evidence.names), 'series', 'series')}"


# --- one model ------------------------------------------------------------------------------------


def _model(evidence: Evidence) -> str:
    # what is assumed stands at the head of the page
    rest = facts.verdict(evidence)[len(facts.assumptions(evidence)) :]
    sentences = "".join(f"<p>{plain(sentence)}</p>" for sentence in rest)
    body = f'<div class="verdict">{sentences}</div>'
    if evidence.rows == 0:
        return body
    return body + _keys(evidence) + sections(evidence)


def _keys(evidence: Evidence) -> str:
    entries: list[tuple[str, str, str | None, str]] = []
    sides = evidence.sides

    def add(what: str, show: Callable[[float], str], values: Sequence[float], remark: str) -> None:
        entries.append((what, show(values[0]), show(values[1]) if len(values) > 1 else None, remark))

    share = facts.main_share(evidence)
    if share is not None:
        low, high = facts.interval_band(evidence, share)
        covered = [facts.coverage(evidence, share, side) for side in sides]
        add(f"{level_name(share)} interval covered", percent, covered, f"chance: {percent(low)} to {percent(high)}")
    *_, error, loss = facts.scores(evidence)
    limit = f"chance: up to {small(error.chance[1])}" if error.chance else ""
    add(capital(error.name), small, _known(error), limit)
    add(capital(loss.name), number, _known(loss), _change_remark(evidence))
    if share is not None:
        widths = [facts.width(evidence, share, side) for side in sides]
        wider = ""
        if len(widths) > 1 and widths[0] > 0.0:
            wider = f"{percent(widths[1] / widths[0] - 1.0, sign=True)}"
        add(f"Mean width of the {level_name(share)} interval", number, widths, wider)
    found = facts.promise_check(evidence)
    if found is not None and found.single:
        size, bound = found.final
        entries.append(("Miscalibration at the end", number(size), None, f"promised at most {number(bound)}"))
    elif found is not None:
        kept = percent(found.kept / found.rows, decimals=0 if found.kept == found.rows else 2)
        entries.append(("Promise kept", kept, None, f"after {count(found.rows, 'outcome')}"))
    return keys(entries)


def _known(score: facts.ScoreRow) -> list[float]:
    return [score.before] if score.after is None else [score.before, score.after]


def _change_remark(evidence: Evidence) -> str:
    found = facts.difference(evidence)
    if found is None or not np.isfinite(found.relative):
        return ""
    remark = percent(found.relative, sign=True)
    if np.isfinite(found.relative_low):
        remark += (
            f", 95% interval {percent(found.relative_low, sign=True)} to {percent(found.relative_high, sign=True)}"
        )
    return remark
