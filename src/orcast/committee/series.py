"""Outcomes of a series: the newest ones, a ring of the last year of steps, and seasons found from their differences."""

# Forgetting of autocovariances, the autocorrelation of differences from which on a season is used, and how often.
KEPT, LEAST, OFTEN = 0.999, 0.2, 20
# A longer season is used if its autocorrelation is higher by this factor.
HIGHER = 1.1
# Smallest rate of the running mean, and the largest distance from it, or step, that counts, in usual ones.
MEAN_RATE, MOST_SIZE = 0.01, 10.0


def slot(time):
    """Place of a time in a ring."""
    at = whole_number(time)
    at = at % RING
    return at + RING if at < 0 else at


def ring_at(ring, newest, time):
    """Number of a ring at a time; nan where it is unknown."""
    if not (newest - RING < time <= newest):
        return NAN
    found = ring[slot(time)]
    return NAN if found == EMPTY else found


def newest_of(series):
    """Time of the newest outcome; nan before any."""
    return series.newest if series.outcomes > 0.0 else NAN


def ring_put(ring, newest, time, value):
    """Put a number into a ring; returns the newest time."""
    if isnan(newest) or time - newest >= RING:
        for i in range(RING):
            ring[i] = EMPTY
    elif time > newest:
        gap = whole_number(time - newest)
        for i in range(1, gap):
            ring[slot(newest + i)] = EMPTY
    elif time <= newest - RING:
        return newest
    ring[slot(time)] = value
    return newest if time < newest else time


def whole_seasons(season, lead):
    """Smallest number of steps that is a multiple of a season and at least `lead`."""
    count = whole_number((lead + season - 1.0) / season)
    return season * max(count, 1)


def season_before(ring, newest, time, season):
    """Number of a ring a whole number of seasons before a time, the newest that is known; nan without a season."""
    if season <= 0.0 or isnan(newest):
        return NAN
    return ring_at(ring, newest, time - whole_seasons(season, time - newest))


def best_season(plan, series, cov, first, last):
    """Season with the highest autocorrelation of differences; 0 if none is high enough."""
    best = LEAST * series.power
    found = 0.0
    for i in range(first, last):
        if series.outcomes >= 2.0 * plan.seasons[i] + 20.0 and cov[i] > best:
            # a multiple of a season has about its autocorrelation
            best = HIGHER * cov[i]
            found = float(plan.seasons[i])
    return found


def learn_seasons(plan, series, cov, ring, time, step):
    """Update the autocovariances of the differences, and now and then the seasons."""
    if series.outcomes > 2.0 and series.power > 0.0:
        # a step that is far larger than the others would hide them
        most = MOST_SIZE * sqrt(series.power / min(series.outcomes - 2.0, 1.0 / (1.0 - KEPT)))
        step = min(max(step, -most), most)
    series.power = KEPT * series.power + step * step
    for i in range(SEASON_COUNT):
        before = ring_at(ring, series.newest, time - plan.seasons[i])
        before -= ring_at(ring, series.newest, time - plan.seasons[i] - 1.0)
        cov[i] *= KEPT
        if not isnan(before):
            cov[i] += step * before
    count = whole_number(series.outcomes)
    if count % OFTEN == 0:
        if series.presumed_short == 0.0:
            series.short_season = best_season(plan, series, cov, 0, SHORT_SEASONS)
        if series.presumed_long == 0.0:
            series.long_season = best_season(plan, series, cov, SHORT_SEASONS, SEASON_COUNT)


def newest_three(series, ring):
    """Find the three newest outcomes again, after one that came late."""
    count = 0
    for back in range(RING):
        y = ring_at(ring, series.newest, series.newest - back)
        if isnan(y):
            continue
        if count == 0:
            series.y_0 = series.y_1 = series.y_2 = y
        elif count == 1:
            series.y_1 = series.y_2 = y
        else:
            series.y_2 = y
            break
        count += 1


def learn_mean(series, y):
    """Update the running mean and size of the outcomes; one that is far away counts as one that is not."""
    if series.outcomes == 1.0:
        series.mean = y
        return
    rate, far = max(1.0 / series.outcomes, MEAN_RATE), y - series.mean
    if series.outcomes > 2.0 and series.size > 0.0:
        most = MOST_SIZE * series.size
        far = min(max(far, -most), most)
    series.mean += rate * far
    series.size += max(1.0 / (series.outcomes - 1.0), MEAN_RATE) * (fabs(far) - series.size)


def observe(plan, row, time, y):
    """Add the outcome of a time, in the working scale; one that is known already changes nothing."""
    series = as_series(row)
    cov = cut(row, SERIES_SIZE, SEASON_COUNT)
    ring = cut(row, SERIES_SIZE + SEASON_COUNT, RING)
    newest = newest_of(series)
    if not isnan(ring_at(ring, newest, time)) or time <= newest - RING:
        return
    step = y - series.y_0
    series.newest = ring_put(ring, newest, time, y)
    series.outcomes += 1.0
    learn_mean(series, y)
    if time < newest:
        newest_three(series, ring)
        return
    if isnan(newest):
        series.y_0 = series.y_1 = series.y_2 = y
        return
    series.y_2 = series.y_1
    series.y_1 = series.y_0
    series.y_0 = y
    learn_seasons(plan, series, cov, ring, time, step)
