"""From a frame of forecasts and outcomes to the same frame with recalibrated forecasts beside them."""

from __future__ import annotations

import os
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from orcast.engine import Oracle
from orcast.panel.columns import find_in
from orcast.panel.frame import Frame
from orcast.panel.frame_run import FrameOptions, FrameRun
from orcast.panel.row_times import Timing
from orcast.panel.state import PanelState, open_state
from orcast.panel.workers import Progress, worker_count
from orcast.payoffs import Payoff

AnyFrame = TypeVar("AnyFrame")


def recalibrate(
    df: AnyFrame,
    *,
    target: Any = None,
    y: Any = None,
    model: Any = None,
    series: Any = None,
    time: Any = None,
    cutoff: Any = None,
    horizon: Any = None,
    known: Any = None,
    lag: Any = None,
    issued_every: Any = None,
    nowcast: bool = False,
    low: Any = None,
    high: Any = None,
    levels: ArrayLike | None = None,
    payoff: Payoff | None = None,
    oracle: Oracle | None = None,
    state: PanelState | str | os.PathLike[str] | None = None,
    replay: bool = False,
    replace: bool = False,
    workers: int | None = None,
    progress: bool | Progress = False,
    outside: str = "report",
    pool: Any = True,
    randomised: Any = None,
) -> AnyFrame:
    """Recalibrate the forecasts in a data frame, of one series or of thousands; a frame of the same type comes back.

    The frame (pandas, polars, or any that narwhals knows) has a row for each forecast, with its outcome where that is
    known.  Columns are found by the names people use, as Nixtla's ``unique_id``, ``ds``, ``y``, ``cutoff``,
    ``MODEL-lo-90``, or ``q0.1``, ``yhat_lower``, ``mean`` and ``sd``, ``member_1``, ``p``, ``p_home``, see
    `orcast.panel.columns`; other names are given as ``y``, ``model``, ``series``, ``time``, ``cutoff`` and
    ``horizon``.  Each model and series has a game of its own, with a guarantee of its own.

    A **long** frame has a row for each quantile or sample instead, as hubs have it (``output_type``,
    ``output_type_id``, ``value``; see `orcast.panel.long_tables`): the answer to each comes out beside it, as
    ``orcast_value``.  ``target`` is a frame of outcomes, if they are not beside the forecasts: rows belong together
    that agree in the time and in all columns of the same name.  darts ``TimeSeries`` are read
    too, and a pandas frame comes out.

    **What was known when.**  Without issue times **each outcome counts as known before the next forecast is issued**.
    If that was not so, the result looks better than it can be: forecasts of a whole day that were issued together did
    not know each other's outcomes.  A row has three times.

    - *issued*: the column ``cutoff``; or ``issued_every=24`` (so many rows of a series are issued together, just
      before the first of them), or ``issued_every="daily"``, ``"weekly"``, ``"12h"`` (all rows of a day, of a week
      from Monday on, of half a day; days are those of the times' own zone, of UTC if they have one);
    - *about*: the column ``time``, which is after the cutoff (``nowcast=True`` allows others, and then ``known`` or
      ``lag`` is needed);
    - *known*: the column ``known``, or ``lag`` after the time: ``"4D"``, ``"36h"``, a timedelta, a number where times
      are numbers, or one of these for each series.  Otherwise an outcome is known at its time.

    A forecast uses the outcomes that were known when it was issued.

    **Out** come the columns in the form that was found, under the name ``MODEL_orcast`` (``orcast_`` before those
    without a model), quantiles at ``levels`` if asked for, and for each model

    - ``..._holds``: the certificate, whether no outcome could break the promise;
    - ``..._promised``: the bound on the miscalibration after this row, known before its outcome, as long as
      certificates held (what rounds added whose certificate did not is not in it);
    - ``..._miscalibration``: what it was after it;
    - ``..._status``: "ok"; "pending", no outcome yet; "no forecast", it is missing or not finite; "outside", the
      outcome lies beyond the bounds and was not used; "given up", it came long after later ones and was not used;
      with a state also "seen", answered before; "corrected", the outcome is not the one that was used; "late", before
      rows that were answered, so there is no answer; "lost", more rows were pending than a game keeps.

    ``replace=True`` puts them into the found columns instead.  A member of an ensemble keeps its rank: the i-th of n
    becomes the quantile at (i - 0.5) / n.  A mean and a deviation are those of the nearest normal.  A point forecast is
    read as Gaussian, with a spread from its errors known so far (`orcast.residuals`; a tenth of its size before the
    first); its median comes out, and intervals.

    **Order.**  The rows of a series are played in the order in which they were issued.  With cutoffs, or
    ``issued_every``, there is a game for each horizon: so many steps of its series a time lies after its cutoff, by
    the calendar (days, weeks, months, working days; whole numbers as they are), so that a missing row moves no other.
    Where times are irregular, which is said, horizons are the first, second, ... time of each cutoff.  Without a column
    of times the rows of a series stand in their order.

    **Bounds.**  ``low`` and ``high`` are numbers, names of columns, or numbers by series; or they are left out.
    Outcomes beyond them are reported with their rows and not used; ``outside="clip"`` clips them, ``"raise"`` refuses.

    **State.**  ``state`` is a path, read if it is there and written at the end, or a `PanelState`; the next frame goes
    on from it, bit for bit as if both had been one.  Rows without an outcome are pending in it, for a later frame with
    the same row and its outcome.  Rows that were answered are answered again as they were.  If an outcome changed
    since, that is reported; ``replay=True`` then plays the series anew, from a frame that holds it from its start.  If
    anything is refused, the state is as it was.

    **Pools.**  Series move together, and each by itself knows little: beside its own learners each game has some that
    take half of each step from the mean of all series of the frame, at its own horizon and to a lesser part at the
    others.  A series that begins late begins with what the others learnt.  Only outcomes that were known when a
    forecast was issued are heard.  Guarantee and certificate stay each series' own.  ``pool=False`` lets each learn by
    itself; ``pool="region"``, or several columns, lets those learn together that agree in them.  Probabilities, and
    oracles other than the default, are played without a pool.  With a state, forecasts that were issued at one time
    come in one frame; one that was issued before others of its pool were answered hears nothing of it.

    **Coins.**  With ``randomised=seed`` the quantiles that come out are randomised, by a coin for each row (see
    `Forecast.randomised`), so that what is promised holds for the outcomes that are counted, if they are chosen without
    the coins.  The coins of a series follow from the seed, its key and the horizon.

    Many series are played by all cores (``workers``), with the same results for any number; ``progress=True`` shows a
    bar.  A ``payoff`` may have contexts such as ``by("hour", values=range(24))``, whose features are columns; an
    ``oracle`` other than the default is `Equilibrium`, which has no memory of recent errors.

    >>> import orcast as oc, pandas as pd
    >>> frame = pd.DataFrame({
    ...     "unique_id": ["A"] * 3, "ds": ["2024-01-01", "2024-01-02", "2024-01-03"], "y": [5.0, 6.0, None],
    ...     "ETS": [4.0, 5.0, 5.5], "ETS-lo-80": [3.5, 4.5, 5.0], "ETS-hi-80": [4.5, 5.5, 6.0]})
    >>> after = oc.recalibrate(frame, low=0)
    >>> list(after.columns[6:])
    ['ETS_orcast-lo-80', 'ETS_orcast', 'ETS_orcast-hi-80', 'ETS_orcast_holds', 'ETS_orcast_promised',
     'ETS_orcast_miscalibration', 'ETS_orcast_status']
    >>> after["ETS_orcast_status"].tolist()
    ['ok', 'ok', 'pending']
    """
    timing = Timing(lag, issued_every, nowcast)
    options = FrameOptions(low, high, levels, payoff, outside, oracle, timing, pool, randomised).checked()
    count = worker_count(workers)
    frame = Frame(df, target, y=y, time=time)
    names = {"y": y, "series": series, "time": time, "cutoff": cutoff, "horizon": horizon, "known": known}
    with open_state(state) as panel:
        begun = panel is not None and panel.content.options is not None
        layout = find_in(frame, model=model, pending=begun, **names)
        run = FrameRun(frame, layout, options, panel)
        run.play(count, progress, bool(replay))
        run.warn(bool(replay))
        result: AnyFrame = run.result(bool(replace))
        if panel is not None:
            run.commit(panel)
    return result
