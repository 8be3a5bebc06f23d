"""Recipes that make a stream of a series: targets, times of issue, experts, and times at which outcomes are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from research.comparison.series import Series, load
from research.comparison.stream import Array, Stream, Whole
from research.learners import Expert, Task

HUB = np.array([0.01, 0.025, *np.arange(1, 20) / 20, 0.975, 0.99]).round(3)
"""The 23 levels of the COVID-19 forecast hub."""
TWENTIETHS = (np.arange(1, 20) / 20).round(2)
FIVE = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
EVENT = np.empty(0)


class Plan(NamedTuple):
    """Rows of one series: row r is issued with `seen[r]` values in sight, about value `target[r]`.

    Value t is of the time t; `issued` and `known` are times on that clock.
    """

    issued: Whole
    known: Whole
    seen: Whole
    target: Whole
    horizon: Whole


def one_step(size: int, first: int, late: int = 1) -> Plan:
    """Forecast each value from those before; values become known `late` at a time, at the last of them.

    >>> one_step(8, 2, late=3).seen.tolist(), one_step(8, 2, late=3).known.tolist()
    ([0, 3, 3, 3, 6, 6], [2, 5, 5, 5, 8, 8])
    """
    target = np.arange(first, size)
    seen = target // late * late
    return Plan(target - 1, seen + late - 1, seen, target, np.ones_like(target))


def day_ahead(size: int, first: int, hour: int = 10, steps: int = 24) -> Plan:
    """Forecast all steps of the next day at one hour of each day; each step is a horizon.

    >>> plan = day_ahead(96, 24)
    >>> plan.issued[[0, 23, 24]].tolist(), plan.target[[0, 23, 24]].tolist()
    ([33, 33, 57], [48, 71, 72])
    """
    days = np.arange(-(-first // steps), size // steps - 1)
    step = np.tile(np.arange(steps), days.size)
    day = np.repeat(days, steps)
    target, seen = steps * (day + 1) + step, steps * day + hour
    return Plan(seen - 1, target, seen, target, step + 1)


def ahead(size: int, first: int, horizons: int = 4) -> Plan:
    """Forecast the next few values at each time."""
    origins = np.arange(first, size - horizons + 1)
    step = np.tile(np.arange(horizons), origins.size)
    seen = np.repeat(origins, horizons)
    return Plan(seen - 1, seen + step, seen, seen + step, step + 1)


PLANS: dict[str, Callable[..., Plan]] = {"one-step": one_step, "day-ahead": day_ahead, "ahead": ahead}


@dataclass(frozen=True, eq=False)
class Recipe:
    """Recipe of a stream of at most `rows` rows, from value `first` on.

    Experts forecast from `warm` on, so that they have errors of their own at `first`.  `event` is the level of the
    values in sight at first whose excess is forecast.  `through` makes another series of the series.
    """

    name: str
    kind: str
    series: str
    experts: Mapping[str, Expert]
    first: int
    rows: int
    plan: str = "one-step"
    levels: Array = field(default_factory=HUB.copy)
    ensemble: bool = False
    event: float | None = None
    late: int = 1
    horizons: int = 4
    through: Callable[[Series], Series] | None = None
    adversary: Callable[[], Any] | None = None
    quick: bool = False

    def load(self, data: str | Path | None = None) -> Series:
        """Load the series and apply `through`."""
        series = load(self.series, data)
        return series if self.through is None else self.through(series)

    def make(self, data: str | Path | None = None) -> Stream:
        """Make the stream."""
        return self.build(self.load(data))

    def rows_of(self, size: int) -> tuple[Plan, Whole]:
        """All rows of a series of `size` values, and the indices of those that are kept."""
        options = {"late": self.late} if self.late > 1 else {}
        options |= {"horizons": self.horizons} if self.plan == "ahead" else {}
        plan = PLANS[self.plan](size, self.warm, **options)
        return plan, np.flatnonzero(plan.seen >= self.first)

    @property
    def warm(self) -> int:
        """First value that the experts forecast."""
        return max(self.first // 2, 2 * self.late, 2)

    def build(self, series: Series) -> Stream:
        """Make the stream of a series or of a panel."""
        panel = np.atleast_2d(series.values)
        each = max(self.rows // panel.shape[0], 1)
        plan, kept = self.rows_of(panel.shape[1])
        # only whole times of issue, so that all horizons have equally many rows
        last = plan.issued[kept[: each + 1][-1]] if kept.size > each else np.inf
        kept = kept[plan.issued[kept] < last] if kept.size > each else kept
        plan = Plan(*(part[: kept[-1] + 1] for part in plan))
        parts_of = [self._ask(values[: plan.target.max() + 1], plan, series) for values in panel]
        parts = [np.concatenate([mine[kept] for mine in column]) for column in zip(*parts_of, strict=True)]
        issued, known, horizon = (np.tile(part[kept], len(panel)) for part in (plan.issued, plan.known, plan.horizon))
        which = np.repeat(np.arange(len(panel)), kept.size)
        order = np.lexsort((horizon, which, issued))
        y, *forecasts = (part[order] for part in parts)
        binary = not self.levels.size
        low, high = (0.0, 1.0) if binary else (series.low, series.high)
        forecasts = [np.clip(rows, low, high) for rows in forecasts]
        members = forecasts[0] if self.ensemble else None
        if members is not None:
            forecasts = [np.quantile(members, self.levels, axis=1, method="hazen").T]
        return Stream(
            name=self.name,
            kind=self.kind,
            levels=self.levels,
            experts=dict(zip(self.experts, forecasts, strict=True)),
            y=y,
            issued=issued[order],
            known=known[order],
            low=low,
            high=high,
            series=which[order] if len(panel) > 1 else None,
            horizon=horizon[order] if np.unique(horizon).size > 1 else None,
            members=members,
            adversary=self.adversary,
        )

    def _ask(self, y: Array, plan: Plan, series: Series) -> list[Array]:
        """Outcomes, and the forecasts of each expert."""
        threshold = None if self.event is None else float(np.quantile(y[: plan.seen[0]], self.event))
        task = Task(y, plan.seen, plan.target, plan.horizon, series.period, self.levels, series.x, threshold)
        return [task.outcome, *(expert(task) for expert in self.experts.values())]

    @property
    def packages(self) -> set[str]:
        """Packages that the experts need."""
        inner = (getattr(expert, "expert", expert) for expert in self.experts.values())
        return {needs for expert in inner if (needs := getattr(expert, "package", None))}


# --- series made of others ---


def weekly(series: Series) -> Series:
    """Weekly means of hourly values, by three hours of the day: a panel of eight.

    >>> weekly(Series("a", np.arange(336.0), 24)).values[:, 0].tolist()
    [73.0, 76.0, 79.0, 82.0, 85.0, 88.0, 91.0, 94.0]
    """
    weeks = series.values.size // 168
    values = series.values[: weeks * 168].reshape(weeks, 7, 8, 3).mean(axis=(1, 3)).T
    return Series(series.name, values, 1, series.low, series.high)


def last_years(series: Series) -> Series:
    """Last 108 values: nine years of months."""
    return Series(series.name, series.values[-108:], series.period, series.low, series.high)


def at_noon(series: Series) -> Series:
    """Values at noon of hourly values."""
    return Series(series.name, series.values[12::24].copy(), 1, series.low, series.high)
