"""Compiled kernels of seasonal memory: at which lags what surprised the learners comes back, found as outcomes come.

The surprises are the errors of the first learner, which knows the last errors but no season; their autocorrelation,
with forgetting, has peaks at the seasons.  The two highest peaks that chance does not explain are used.  A season that
is presumed, from the calendar, is used from the start, until two others have higher peaks.  Its multiples do not count
as others before the presumed ones can be measured themselves: a week is known to be one before a day's multiples are
mistaken for it.
"""

from __future__ import annotations

from orcast.engine.kernels.records import SeasonColumn
from orcast.jit import kernel, kernel_part
from orcast.jit.ieee import sqrt

# The past is forgotten at this rate.
KEPT = 0.999
# Shorter lags are the business of the learners.
SHORTEST = 4
# A peak counts if it is so many standard errors high; one that was found is kept until another is higher by a fifth.
LEAST_PEAK, HIGHER = 4.0, 1.2
# A peak can be measured after so many seasons.
MEASURED = 2.5
# What a season that is presumed counts as, if its own peak is lower or cannot be measured yet.
PRESUMED = 1.01 * LEAST_PEAK


@kernel_part
def season_ago(surprises, seasons, which, pending):
    """The surprise of one season ago, or of several where that is not known yet; zero if there is no such season."""
    lag = abs(int(seasons[which]))
    if lag == 0:
        return 0.0
    # the newest outcome is that of 1 + pending rounds ago
    back = lag - 1 - int(pending)
    while back < 0:
        back += lag
    if back >= min(int(seasons[SeasonColumn.COUNT]), surprises.shape[0]):
        return 0.0
    at = int(seasons[SeasonColumn.NEXT]) - 1 - back
    return surprises[at if at >= 0 else at + surprises.shape[0]]


@kernel
def add_surprise(surprises, autocorrelation, seasons, value):
    """One more surprise."""
    size = surprises.shape[0]
    at = int(seasons[SeasonColumn.NEXT])
    known = min(int(seasons[SeasonColumn.COUNT]), size)
    autocorrelation[0] = KEPT * autocorrelation[0] + value * value
    for lag in range(1, size):
        if lag > known:
            break
        place = at - lag
        before = surprises[place if place >= 0 else place + size]
        autocorrelation[lag] = KEPT * autocorrelation[lag] + value * before
    surprises[at] = value
    seasons[SeasonColumn.NEXT] = at + 1.0 if at + 1 < size else 0.0
    seasons[SeasonColumn.COUNT] += 1.0


@kernel
def height(autocorrelation, count, lag):
    """The autocorrelation at a lag in standard errors; zero where it is no peak or cannot be measured yet."""
    if lag < SHORTEST or lag + 1 >= autocorrelation.shape[0] or count < MEASURED * lag:
        return 0.0
    here = autocorrelation[lag]
    if here < autocorrelation[lag - 1] or here < autocorrelation[lag + 1]:
        return 0.0
    seen = min(count, 1.0 / (1.0 - KEPT)) - lag * (1.0 if count < 1.0 / (1.0 - KEPT) else 0.0)
    return here / max(autocorrelation[0], 1e-300) * sqrt(max(seen, 1.0))


@kernel_part
def is_multiple(lag, of):
    """Whether a lag is a multiple of another, if there is one."""
    return of > 0 and lag % of == 0


@kernel
def find_seasons(autocorrelation, seasons):
    """The two highest peaks; returns whether the first and the second have changed, as 1 and 2 added up."""
    count = seasons[SeasonColumn.COUNT]
    was_first, was_second = int(seasons[SeasonColumn.FIRST]), int(seasons[SeasonColumn.SECOND])
    unmeasured = count < MEASURED * max(-was_first, -was_second)
    first = 0
    second = 0
    best = LEAST_PEAK
    next_best = LEAST_PEAK
    for lag in range(SHORTEST, autocorrelation.shape[0] - 1):
        found = height(autocorrelation, count, lag)
        if lag == abs(was_first) or lag == abs(was_second):
            found *= HIGHER
        if lag == -was_first or lag == -was_second:
            found = max(found, PRESUMED)
        elif unmeasured and (is_multiple(lag, -was_first) or is_multiple(lag, -was_second)):
            found = 0.0
        if found > best:
            second = first
            next_best = best
            first = lag
            best = found
        elif found > next_best:
            second = lag
            next_best = found
    # one that stays keeps its place, and with it what was learnt
    if (second > 0 and second == abs(was_first)) or (first > 0 and first == abs(was_second)):
        first, second = second, first
    changed = 0
    if first != abs(was_first):
        changed += 1
        seasons[SeasonColumn.FIRST] = first
    if second != abs(was_second):
        changed += 2
        seasons[SeasonColumn.SECOND] = second
    return changed
