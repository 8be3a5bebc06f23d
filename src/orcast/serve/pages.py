"""Pages for people, without scripts: all series with the worst first, and the report of one series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np

from orcast.evaluate import report
from orcast.evaluate.evaluation import Evaluation
from orcast.evaluate.svg import percent, plain, shortened
from orcast.forecasts import Forecast
from orcast.spaces import Binary
from orcast.store import Store, StoredSeries
from orcast.store.log import base_probability, base_quantiles

# Series that the first page shows, and rounds that the page of a series evaluates.
MOST_SERIES, ROUNDS = 100, 1_000
EMPTY = "No series yet: PUT /v1/series/NAME opens one."
HEADINGS = ("Series", "Rounds", "Pending", "Share of bound", "Held")
# Seconds after which a page is loaded again.
HEADERS = {"Refresh": "30"}
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def index(store: Store) -> Callable[[], str]:
    """Read all series; returns a function that draws the page: the largest share of the bound first."""
    names = store.recent(MOST_SERIES)
    rows = sorted((_summary(store.series(name)) for name in names), key=lambda row: -row[0])
    total = len(store)
    return lambda: _index(rows, total)


def _index(rows: list[tuple[float, list[str]]], total: int) -> str:
    columns = {heading: [cells[k] for _, cells in rows] for k, heading in enumerate(HEADINGS)}
    over = sum(used > 1.0 for used, _ in rows)
    text = f"{over or 'No'} series above {'its' if over == 1 else 'their'} bound, of {len(rows):,}" if rows else EMPTY
    shown = "" if total <= len(rows) else f"The {len(rows)} of {total:,} series that were used last are shown."
    body = f'<p class="headline {"avoid" if over else "use"}">{plain(text)}</p><p class="soft">{plain(shown)}</p>'
    return report.page("Series", "", body + (report.table_html(columns, "Series") if rows else ""))


def _summary(series: StoredSeries) -> tuple[float, list[str]]:
    """Share of its bound that a series uses, and its cells."""
    found = series.guarantee
    used = found.miscalibration / max(found.promised + found.excess, 1e-300)
    cells = [
        f'<a href="/series/{plain(quote(str(series.name), safe=""))}">{report.name_html(series.name)}</a>',
        f"{found.rounds:,}",
        f"{len(series.pending):,}",
        percent(used),
        percent(found.held),
    ]
    return used, cells


def series(found: StoredSeries) -> Callable[[], str]:
    """Read one series; returns a function that draws its page: the report of its last rounds."""
    rounds = [each for each in reversed(found.history(ROUNDS)) if each.status == "settled" and each.base is not None]
    title, space = shortened(str(found.name), 120) or "(no name)", found.space
    under = f'<p class="soft">{plain(found.guarantee)}</p><p><a href="/">All series</a></p>'
    if not rounds:
        return lambda: report.page(title, under, "<p>No outcomes yet.</p>")
    model = str(found.name)
    return lambda: report.page(
        title, under, report.model_html(_evaluation(model, space, rounds)), f"<p>{report.FOOT}</p>"
    )


def _evaluation(model: str, space: Any, rounds: Sequence[Any]) -> Evaluation:
    """Evaluation of settled rounds; of several experts the first is the base forecast."""
    horizons = [each.horizon for each in rounds]
    common: dict[str, Any] = {
        "model": model,
        "time": np.array([each.target.replace(tzinfo=None) for each in rounds], dtype="datetime64[us]"),
        "horizon": np.array(horizons, dtype=np.float64) if all(_is_number(each) for each in horizons) else None,
        "timed": True,
    }
    if isinstance(rounds[0].forecast, Forecast):
        before = [base_quantiles(each.base, space, LEVELS) for each in rounds]
        after = [each.forecast.quantile(LEVELS) for each in rounds]
        y = [float(each.y) for each in rounds]
        bounds = {"low": space.low, "high": space.high}
        return Evaluation.of(before, y, after=after, levels=LEVELS, **bounds, **common)
    y = [space.outcome(each.y) for each in rounds]
    if isinstance(space, Binary):
        before = [base_probability(each.base) for each in rounds]
        return Evaluation.of(before, y, after=[each.forecast.probability() for each in rounds], **common)
    before, after = (
        [np.atleast_2d(each.base)[0] for each in rounds],
        [each.forecast.mass for each in rounds],
    )
    return Evaluation.of(before, y, after=after, labels=tuple(map(str, space.labels)), **common)


def _is_number(horizon: Any) -> bool:
    return isinstance(horizon, (int, float)) and not isinstance(horizon, bool)
