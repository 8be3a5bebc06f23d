"""How forecasts and recalibrators show themselves in a notebook: small fragments of HTML, readable on light and dark.

Everything is drawn in the notebook's own text colour and one accent; all text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orcast.forecasts import BinaryForecast, BoxForecast, CircleForecast, FiniteForecast, Forecast, LabelForecast
from orcast.report.svg import SIZE, area
from orcast.report.text import name, number, percent, plain

if TYPE_CHECKING:
    from orcast.ledger import Certificate

__all__ = ["forecast_html", "recalibrator_html"]

Vector = NDArray[np.float64]

# Blue that stands out on white and on black.
ACCENT = "#3b82c4"
BARS = 48
# How many labels, points or components are listed.
LISTED = 8


def forecast_html(forecast: Forecast | FiniteForecast) -> str:
    """A forecast for notebooks: its shape, the numbers one asks for, and its certificate.

    >>> import orcast as oc
    >>> p = oc.Recalibrator(oc.Interval(0, 10)).predict(oc.Normal(4, 1))
    >>> shown = forecast_html(p)
    >>> "90% interval" in shown, "The certificate holds" in shown
    (True, True)
    """
    body = _quantity(forecast) if isinstance(forecast, Forecast) else _finite(forecast)
    return _card(type(forecast).__name__, body + _certificate(forecast.certificate))


def recalibrator_html(obj: Any) -> str:
    """A recalibrator or a forecaster for notebooks: where it stands with its promise, and what is pending.

    >>> import orcast as oc
    >>> recal = oc.Recalibrator(oc.Interval(0, 10))
    >>> p = recal.predict(oc.Normal(4, 1)); recal.update(5)
    >>> "<th>rounds</th><td>1</td>" in recalibrator_html(recal).replace(f' style="{_LEFT}"', "").replace(
    ...     f' style="{_RIGHT}"', "")
    True
    """
    g = obj.guarantee
    pending = list(obj.pending)
    named = ", ".join("unnamed" if id is None else str(id) for id in pending[:3])
    rows = [
        ("space", name(obj.space, limit=80)),
        ("kept calibrated", name(obj.payoff, limit=80)),
        ("rounds", f"{g.rounds:,}"),
        ("miscalibration", number(g.miscalibration, digits=3)),
        ("promised at most", number(g.promised, digits=3)),
        *((("added after", number(g.excess, digits=3)),) if g.excess else ()),
        ("certificates held", percent(g.held)),
        *((f"part: {part}", number(value, digits=3)) for part, value in list(g.parts.items())[:LISTED]),
        ("pending", f"{len(pending):,}" + (f" ({plain(named)}{', …' if len(pending) > 3 else ''})" if pending else "")),
    ]
    share = g.miscalibration / g.promised if g.rounds and g.promised > 0.0 else 0.0
    used = f"{percent(share, decimals=0)} of what the promise allows is used" if g.rounds else "no round is settled yet"
    return _card(type(obj).__name__, _meter(share) + f'<div style="{_SOFT}">{used}</div>' + _table(rows))


# --- quantities -----------------------------------------------------------------------------------


def _quantity(p: Forecast) -> str:
    low, high = p.interval(0.9)

    def own(value: float) -> str:
        # what is nothing beside the width is rounding
        return number(0.0 if abs(value) < 1e-9 * (high - low) else value)

    rows = [
        ("median", own(p.median())),
        ("90% interval", f"{own(low)} to {own(high)}"),
        ("50% interval", " to ".join(own(end) for end in p.interval(0.5))),
        ("mean", own(p.mean())),
        ("standard deviation", own(p.std())),
    ]
    return _shape(p) + _table(rows)


def _shape(p: Forecast) -> str:
    """A histogram of the mass between the outermost percents; dark in the half in the middle, pale beyond the 90%."""
    first, last = (float(q) for q in p.quantile([0.005, 0.995]))
    # on a point mass both are the same
    margin = 0.02 * (last - first) if last > first else max(abs(first), 1.0) * 0.05
    edges = np.linspace(first - margin, last + margin, BARS + 1)
    if not np.isfinite(edges).all() or not (np.diff(edges) > 0.0).all():
        return ""
    mass = np.maximum(np.diff(p.cdf(edges)), 0.0)
    centres = (edges[1:] + edges[:-1]) / 2
    depth = np.full(BARS, 0.22)
    for share, opacity in ((0.9, 0.5), (0.5, 0.95)):
        low, high = p.interval(share)
        depth[(centres >= low) & (centres <= high)] = opacity
    depth[int(mass.argmax())] = max(depth[int(mass.argmax())], 0.5)
    return _bars(mass, depth) + _ends(number(edges[0]), number(edges[-1]))


def _bars(mass: Vector, opacity: Vector) -> str:
    """Bars of one width, those of one opacity in one path."""
    height, left = mass / (float(mass.max()) or 1.0), np.arange(mass.size) / mass.size
    edge = 0.05 / mass.size
    paths = ""
    for depth in np.unique(opacity):
        chosen = [
            area([a + edge, a + 1.0 / mass.size - edge], [0.0, 0.0], [h, h])
            for a, h in zip(left[opacity == depth], height[opacity == depth], strict=True)
        ]
        paths += f'<path fill-opacity="{depth:g}" d="{"".join(chosen)}"/>'
    return (
        f'<svg viewBox="0 0 {SIZE:g} {SIZE:g}" preserveAspectRatio="none" role="img" '
        f'style="display:block;width:100%;height:72px;border-bottom:1px solid currentColor" fill="{ACCENT}">'
        f"<title>shape of the forecast</title>{paths}</svg>"
    )


def _ends(low: str, high: str) -> str:
    return (
        f'<div style="{_SOFT};display:flex;justify-content:space-between"><span>{low}</span><span>{high}</span></div>'
    )


# --- finite spaces --------------------------------------------------------------------------------


def _finite(p: FiniteForecast) -> str:
    if isinstance(p, BinaryForecast):
        return _meter(float(p)) + _table([("probability of a yes", percent(float(p), decimals=2))])
    if isinstance(p, LabelForecast):
        return _listed(p.top(LISTED), p.mass.size, "labels")
    if isinstance(p, CircleForecast):
        start, stop = p.arc(0.9)
        rows = [
            ("mean direction", number(p.mean())),
            ("90% in the arc", f"{number(start)} to {number(stop)}"),
            ("standard deviation", number(p.std())),
        ]
        mass = _pooled(p.mass)
        return _bars(mass, np.full(mass.size, 0.8)) + _ends("0", number(p.space.period)) + _table(rows)
    if isinstance(p, BoxForecast):
        pairs = list(zip(p.mean().tolist(), p.std().tolist(), strict=True))
        rows = [
            (f"component {i}", f"mean {number(mean)}, standard deviation {number(std)}")
            for i, (mean, std) in enumerate(pairs[:LISTED])
        ]
        return _table(rows) + _more(len(pairs), "components")
    order = np.argsort(-p.mass, kind="stable")[:LISTED].tolist()
    return _listed([(p.space.value(k), float(p.mass[k])) for k in order], p.mass.size, "points")


def _pooled(mass: Vector) -> Vector:
    """The masses of neighbours together where there are too many cells to draw."""
    many = math.ceil(mass.size / (2 * BARS))
    return np.add.reduceat(mass, np.arange(0, mass.size, many))


def _listed(pairs: Sequence[tuple[Any, float]], total: int, what: str) -> str:
    rows = [(name(value, limit=40), _meter(share) + percent(share)) for value, share in pairs]
    return _table(rows, escaped=True) + _more(total, what)


def _more(total: int, what: str) -> str:
    return f'<div style="{_SOFT}">and {total - LISTED:,} more {what}</div>' if total > LISTED else ""


# --- HTML -----------------------------------------------------------------------------------------

_SOFT = "opacity:.7;font-size:85%"
_LEFT = "width:38%;vertical-align:top;text-align:left;font-weight:normal;opacity:.75;padding:1px 12px 1px 0"
_RIGHT = "text-align:left;padding:1px 0;font-variant-numeric:tabular-nums;overflow-wrap:anywhere"


def _card(title: str, body: str) -> str:
    return (
        '<div style="max-width:30rem;font-family:system-ui,sans-serif;font-size:13px;line-height:1.5">'
        f'<div style="font-weight:600;margin-bottom:4px">{plain(title)}</div>{body}</div>'
    )


def _table(rows: Iterable[tuple[str, str]], *, escaped: bool = False) -> str:
    cells = "".join(
        f'<tr style="background:none"><th style="{_LEFT}">{what if escaped else plain(what)}</th>'
        f'<td style="{_RIGHT}">{value}</td></tr>'
        for what, value in rows
    )
    return f'<table style="border-collapse:collapse;margin:6px 0;width:100%"><tbody>{cells}</tbody></table>'


def _meter(share: float) -> str:
    return (
        '<svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" '
        'style="display:block;width:100%;height:6px;margin:3px 0">'
        '<rect width="100" height="6" rx="1" fill="currentColor" fill-opacity="0.15"/>'
        f'<rect width="{100 * min(max(share, 0.0), 1.0):.2f}" height="6" rx="1" fill="{ACCENT}"/></svg>'
    )


def _certificate(certificate: Certificate | None) -> str:
    if certificate is None:
        return ""
    if certificate.holds:
        state = "The certificate holds: no outcome can break the promise."
    else:
        state = "The certificate does not hold: some outcome may exceed what the promise allows."
    return f'<div style="{_SOFT}">{state}</div>'
