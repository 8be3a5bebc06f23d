"""Seasons in the errors: the lags at which their autocorrelation has a significant peak, found online.

The errors are those of the first learner, which uses the last errors but no season. The two highest significant peaks
of their discounted autocorrelation are used. A season that is presumed, from the calendar, is used from the start,
until two others have higher peaks. Multiples of presumed seasons are excluded until the presumed ones can be measured:
else multiples of a day would be taken for a week.
"""

try:
    import cython
except ImportError:
    from orcast.kernels import shim as cython

from orcast.constants import SHORTEST_SEASON

if not cython.compiled:
    from orcast.kernels.pure import as_seasons, fabs, sqrt
    from orcast.kernels.rows import numbers_of

# Discount of the past.
KEPT = 0.999
# A peak counts if it is this many standard errors high; one that was found is kept until another is higher by a fifth.
LEAST_PEAK, HIGHER = 4.0, 1.2
# A peak can be measured after this many seasons.
MEASURED = 2.5
# Height of a presumed season, if its own peak is lower or cannot be measured yet.
PRESUMED = 1.01 * LEAST_PEAK


def season_ago(surprises, size, seasons, which, pending):
    """Error of one season ago, or of several if that outcome is outstanding; zero without a season."""
    lag = int(fabs(seasons.first if which == 0 else seasons.second))
    if lag == 0:
        return 0.0
    # the newest outcome is that of 1 + pending rounds ago
    late, known, at = int(pending), int(seasons.count), int(seasons.next)
    back = lag - 1 - late
    while back < 0:
        back += lag
    if back >= min(known, size):
        return 0.0
    at -= 1 + back
    return surprises[at if at >= 0 else at + size]


def add_surprise(surprises, autocorrelation, size, seasons, value):
    """Add an error."""
    at = int(seasons.next)
    known = int(seasons.count)
    known = min(known, size)
    autocorrelation[0] = KEPT * autocorrelation[0] + value * value
    for lag in range(1, size):
        if lag > known:
            break
        place = at - lag
        before = surprises[place if place >= 0 else place + size]
        autocorrelation[lag] = KEPT * autocorrelation[lag] + value * before
    surprises[at] = value
    seasons.next = at + 1.0 if at + 1 < size else 0.0
    seasons.count += 1.0


def height(autocorrelation, size, count, lag):
    """Autocorrelation at a lag in standard errors; zero if it is no peak or cannot be measured yet."""
    if lag < SHORTEST_SEASON or lag + 1 >= size or count < MEASURED * lag:
        return 0.0
    here = autocorrelation[lag]
    if here < autocorrelation[lag - 1] or here < autocorrelation[lag + 1]:
        return 0.0
    seen = min(count, 1.0 / (1.0 - KEPT)) - lag * (1.0 if count < 1.0 / (1.0 - KEPT) else 0.0)
    return here / max(autocorrelation[0], 1e-300) * sqrt(max(seen, 1.0))


def is_multiple(lag, of):
    """Whether a lag is a multiple of another, if there is one."""
    return of > 0 and lag % of == 0


def find_seasons(autocorrelation, size, seasons):
    """Find the two highest peaks; returns 1 if the first has changed, plus 2 if the second has."""
    count = seasons.count
    was_first, was_second = int(seasons.first), int(seasons.second)
    place_1, place_2 = max(was_first, -was_first), max(was_second, -was_second)
    unmeasured = count < MEASURED * max(-was_first, -was_second)
    first = 0
    second = 0
    best = LEAST_PEAK
    next_best = LEAST_PEAK
    for lag in range(SHORTEST_SEASON, size - 1):
        found = height(autocorrelation, size, count, lag)
        if lag in (place_1, place_2):
            found *= HIGHER
        if lag in (-was_first, -was_second):
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
    # a season that remains keeps its position, and with it the coefficients
    if (second > 0 and second == place_1) or (first > 0 and first == place_2):
        first, second = second, first
    changed = 0
    if first != place_1:
        changed += 1
        seasons.first = first
    if second != place_2:
        changed += 2
        seasons.second = second
    return changed


# --- entry for Python


def find_seasons_arrays(autocorrelation, seasons):
    """Run `find_seasons` on arrays; `seasons` is a record of SEASONS."""
    return find_seasons(numbers_of(autocorrelation), len(autocorrelation), as_seasons(numbers_of(seasons)))
