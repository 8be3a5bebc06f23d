"""Parts of a page: tables, figures, key numbers, the document around them."""

from __future__ import annotations

from collections.abc import Sequence

from orcast.report.style import SHEET
from orcast.report.text import plain

# Nothing may be fetched and no script may run, whatever the names in a file try.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, label: str) -> str:
    """A table in a box of its own that scrolls; cells are HTML, the first of a row names it.

    >>> table(["level", "share"], [["5%", "4%"]], label="Levels").count("<td>")
    1
    """
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>' for row in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{plain(label)}"><table><thead>'
        f"<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def details(summary: str, body: str) -> str:
    """What is folded away until asked for."""
    return f"<details><summary>{plain(summary)}</summary>{body}</details>"


def figure(title: str, lead: str, drawing: str) -> str:
    """A picture under its title and a sentence that says what it shows."""
    return f"<figure><figcaption><h3>{plain(title)}</h3><p>{lead}</p></figcaption>{drawing}</figure>"


def pair(panels: Sequence[tuple[str, str]]) -> str:
    """Pictures side by side where they fit, else one below the other."""
    inside = "".join(f"<div><h4>{plain(title)}</h4>{drawing}</div>" for title, drawing in panels)
    return f'<div class="pair">{inside}</div>'


def keys(entries: Sequence[tuple[str, str, str | None, str]]) -> str:
    """The few numbers that matter: what it is, before, after (None in a check), and a remark."""
    items = []
    for what, before, after, remark in entries:
        if after is None:
            numbers = f'<span class="big">{before}</span>'
        else:
            numbers = (
                f'<span class="big"><span class="was">{before} <span aria-hidden="true">→</span></span> '
                f"<span>{after}</span></span>"
            )
        items.append(f'<div><dt>{plain(what)}</dt><dd>{numbers}<span class="remark">{remark}</span></dd></div>')
    return f'<dl class="keys">{"".join(items)}</dl>'


def document(title: str, body: str) -> str:
    """The page: one file, nothing fetched, nothing run."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{plain(POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f'<link rel="icon" href="data:,"><title>{plain(title)}</title><style>{SHEET}</style></head>\n'
        f"<body>{body}</body></html>\n"
    )
