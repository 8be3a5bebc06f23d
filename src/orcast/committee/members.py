"""Members of the committee, and plans that use them.

A new member is a file with `predict`, `update` and `close` beside those that are here, and a row in MEMBERS.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from orcast.committee import pooled, regressed
from orcast.committee.state import Member, Plan

# Member, and whether it takes part without a pool; those that do not come last.
MEMBERS = (
    (Member("base"), True),  # the base forecast as it is
    (regressed.member("correction", 0.99, False, 1.0), True),
    (regressed.member("house", 0.998, True, 0.4), True),
    (pooled.member(0.99), False),
)


@lru_cache(maxsize=64)
def cached_plan(levels: bytes, scores: bytes, in_pool: bool, corrects: bool, names: Any, changes: Any) -> Plan:
    """Plan from hashable arguments."""
    chosen = [(m, alone) for m, alone in MEMBERS if (in_pool or alone) and (names is None or m.name in names)]
    members = [m for m, _ in chosen] if corrects else [chosen[0][0]]
    alone = sum(each for _, each in chosen) if corrects else 1
    at, to = np.frombuffer(levels), np.frombuffer(scores)
    plan = Plan(at, to, members, in_pool, alone, **dict(changes))
    plan.source = levels, scores, in_pool, corrects, names, changes
    return plan


def plan_for(
    levels: Any, scores: Any, *, pooled: bool = False, corrects: bool = True, names: Any = None, **changes: float
) -> Plan:
    """Plan of a committee at some levels; `names` of members, the base forecast first; `changes` of CONSTANTS."""
    chosen = None if names is None else tuple(names)
    rows = (np.ascontiguousarray(each, dtype=np.float64).tobytes() for each in (levels, scores))
    return cached_plan(*rows, pooled, corrects, chosen, tuple(sorted(changes.items())))
