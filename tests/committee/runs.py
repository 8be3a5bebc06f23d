"""Runs of the compiled committee: one recalibrator's experts, and groups of streams."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from orcast.committee import group
from orcast.committee.group import Group, GroupRun
from orcast.committee.members import plan_for
from orcast.kernels.records import PREDICT, SETTLE

Array = NDArray[np.float64]
LEVELS = np.arange(1, 20) / 20.0
SCORES = norm.ppf(LEVELS)


def alone(
    experts: int = 1, low: float = -np.inf, high: float = np.inf, levels: Array = LEVELS, **options: Any
) -> Group:
    """Committee of one recalibrator."""
    seasons = options.pop("seasons", (0, 0))
    plan = plan_for(levels, norm.ppf(levels), **options)
    none = [0] * experts
    return Group(plan, none, none, none, np.tile([low, high], (experts, 1)), np.array([seasons]))


def run(committee: Group, base: Array, y: Array, late: Any = 0) -> Array:
    """Corrected quantiles of all rounds; outcome t is known `late` rounds later (an array: of each)."""
    rows, memos = [], {}
    known = np.arange(len(y)) + late
    for t in range(len(y)):
        out, memos[t] = group.predict(committee, np.atleast_2d(base[t]), float(t))
        rows.append(out)
        for s in np.flatnonzero(known == t):
            group.update(committee, memos.pop(s), float(y[s]), float(t - s))
    return np.array(rows)


def members_of(committee: Group, memo: Array) -> tuple[Array, Array]:
    """Quantiles of the members and of their mix, from the memo of a single expert."""
    plan = committee.plan
    k, count, at = plan.level_count, plan.member_count, plan.quantiles_at
    return memo[at : at + count * k].reshape(count, k), memo[at + count * k : at + (count + 1) * k]


def panel(streams: Any, times: Any) -> list[tuple[int, int, int]]:
    """Events of a frame: stream s is (series, ahead); at each moment outcomes settle, then all forecasts are issued.

    Row r is the forecast of stream r % count for the time r // count.
    """
    count, events = len(streams), []
    for moment in range(-max(ahead for _, ahead in streams), times):
        for kind in (SETTLE, PREDICT):
            for s, (_, ahead) in enumerate(streams):
                target = moment if kind == SETTLE else moment + ahead
                if 0 <= target < times:
                    events.append((kind, target * count + s, 2 * moment + (kind == PREDICT)))
    return events


def run_panel(
    streams: Any, base: Array, y: Array, low: float = -np.inf, seasons: int = 0, events: Any = None, **options: Any
) -> Any:
    """Run a group with pools by horizon; base (times, streams, levels), y (times, series). Returns quantiles, group."""
    times, count = base.shape[:2]
    series, ahead = (np.array(column) for column in zip(*streams, strict=True))
    horizons = np.unique(ahead, return_inverse=True)[1]
    plan = plan_for(LEVELS, SCORES, pooled=options.pop("pooled", True), **options)
    bounds = np.tile([low, np.inf], (count, 1))
    committee = Group(plan, series, horizons, ahead, bounds, np.tile([seasons, 0], (series.max() + 1, 1)))
    rows = base.reshape(-1, len(LEVELS)).copy()
    prior = np.empty_like(rows)
    values = y[:, series].ravel()
    run_rounds = GroupRun(
        committee, np.tile(np.arange(count), times), np.repeat(np.arange(times), count), values, rows, prior, len(rows)
    )
    run_rounds.run_rounds(np.array(events or panel(streams, times)))
    return prior.reshape(base.shape), committee


def loss(q: Array, y: Array) -> float:
    """Mean pinball loss; q has an axis of levels more than y."""
    d = np.asarray(y)[..., None] - q
    return float(np.maximum(LEVELS * d, (LEVELS - 1) * d).mean())
