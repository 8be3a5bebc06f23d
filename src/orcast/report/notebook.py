"""Forecasts and recalibrators in a notebook: small HTML tables, in the notebook's text colour; text is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from orcast.forecasts import BinaryForecast, BoxForecast, CircleForecast, FiniteForecast, Forecast, LabelForecast
from orcast.plots.text import name, number, percent, plain

__all__ = ["forecast_html", "recalibrator_html"]

# At most so many labels, points or components are listed.
LISTED = 8

_SOFT = "opacity:.7;font-size:85%"
_LEFT = "width:38%;vertical-align:top;text-align:left;font-weight:normal;opacity:.75;padding:1px 12px 1px 0"
_RIGHT = "text-align:left;padding:1px 0;font-variant-numeric:tabular-nums;overflow-wrap:anywhere"


def forecast_html(forecast: Forecast | FiniteForecast) -> str:
    """Show the usual numbers of a forecast, and its certificate.

    >>> import orcast as oc
    >>> p = oc.Recalibrator(oc.Interval(0, 10)).predict(oc.Normal(4, 1))
    >>> shown = forecast_html(p)
    >>> "90% interval" in shown, "The certificate holds" in shown
    (True, True)
    """
    rows, more = _quantity(forecast) if isinstance(forecast, Forecast) else _finite(forecast)
    certificate = forecast.certificate
    if certificate is not None and certificate.holds:
        more += "The certificate holds: no outcome can break the bound."
    elif certificate is not None:
        more += "The certificate does not hold: some outcome may exceed the bound."
    return _card(type(forecast).__name__, rows, more)


def recalibrator_html(obj: Any) -> str:
    """Show the guarantee of a recalibrator or a forecaster, and its pending rounds.

    >>> import orcast as oc
    >>> recal = oc.Recalibrator(oc.Interval(0, 10))
    >>> p = recal.predict(oc.Normal(4, 1)); recal.update(5)
    >>> "rounds</th>" in recalibrator_html(recal)
    True
    """
    g = obj.guarantee
    pending = list(obj.pending)
    named = ", ".join("unnamed" if id is None else str(id) for id in pending[:3])
    rows = [
        ("space", name(obj.space, limit=80)),
        ("payoff", name(obj.payoff, limit=80)),
        ("rounds", f"{g.rounds:,}"),
        ("miscalibration", number(g.miscalibration, digits=3)),
        ("bound", number(g.promised, digits=3)),
        *((("added after", number(g.excess, digits=3)),) if g.excess else ()),
        ("certificates held", percent(g.held)),
        *((f"part: {part}", number(value, digits=3)) for part, value in list(g.parts.items())[:LISTED]),
        ("pending", f"{len(pending):,}" + (f" ({plain(named)}{', …' if len(pending) > 3 else ''})" if pending else "")),
    ]
    return _card(type(obj).__name__, ((plain(what), value) for what, value in rows), "")


def _quantity(p: Forecast) -> tuple[list[tuple[str, str]], str]:
    low, high = p.interval(0.9)

    def own(value: float) -> str:
        # a value that is nothing beside the width is rounding
        return number(0.0 if abs(value) < 1e-9 * (high - low) else value)

    rows = [
        ("median", own(p.median())),
        ("90% interval", f"{own(low)} to {own(high)}"),
        ("50% interval", " to ".join(own(end) for end in p.interval(0.5))),
        ("mean", own(p.mean())),
        ("standard deviation", own(p.std())),
    ]
    return rows, ""


def _finite(p: FiniteForecast) -> tuple[list[tuple[str, str]], str]:
    """Rows of a forecast on a finite space, and how many more there are."""
    if isinstance(p, BinaryForecast):
        return [("probability of a yes", percent(float(p), decimals=2))], ""
    if isinstance(p, CircleForecast):
        arc = " to ".join(map(number, p.arc(0.9)))
        return [("mean direction", number(p.mean())), ("90% in the arc", arc), ("deviation", number(p.std()))], ""
    if isinstance(p, BoxForecast):
        pairs = list(zip(p.mean().tolist(), p.std().tolist(), strict=True))
        rows = [
            (f"component {i}", f"mean {number(mean)}, standard deviation {number(std)}")
            for i, (mean, std) in enumerate(pairs[:LISTED])
        ]
        return rows, _more(len(pairs), "components")
    if isinstance(p, LabelForecast):
        listed, what = p.top(LISTED), "labels"
    else:
        order = np.argsort(-p.mass, kind="stable")[:LISTED].tolist()
        listed, what = [(p.space.value(k), float(p.mass[k])) for k in order], "points"
    return [(name(value, limit=40), percent(share)) for value, share in listed], _more(p.mass.size, what)


def _more(total: int, what: str) -> str:
    return f"and {total - LISTED:,} more {what}. " if total > LISTED else ""


def _card(title: str, rows: Iterable[tuple[str, str]], more: str) -> str:
    """A table under a title; cells are HTML, `more` is text below it."""
    cells = "".join(
        f'<tr style="background:none"><th style="{_LEFT}">{what}</th><td style="{_RIGHT}">{value}</td></tr>'
        for what, value in rows
    )
    return (
        '<div style="max-width:30rem;font-family:system-ui,sans-serif;font-size:13px;line-height:1.5">'
        f'<div style="font-weight:600;margin-bottom:4px">{plain(title)}</div>'
        f'<table style="border-collapse:collapse;margin:6px 0;width:100%"><tbody>{cells}</tbody></table>'
        f'<div style="{_SOFT}">{plain(more)}</div></div>'
    )
