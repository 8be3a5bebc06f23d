"""Recalibration of a data frame."""

from __future__ import annotations

import os
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from orcast.engine import Oracle
from orcast.frame.frame_run import FrameOptions, play_frame
from orcast.frame.reader import Frame
from orcast.frame.state import PanelState, open_state
from orcast.frame.times import Timing
from orcast.frame.workers import Progress
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
    replace: bool = False,
    workers: int | None = None,
    progress: bool | Progress = False,
    outside: str = "report",
    pool: Any = True,
    randomised: Any = None,
) -> AnyFrame:
    """Recalibrate the forecasts in a data frame, of one series or of thousands.

    The frame (pandas, polars, or any other of narwhals) has a row for each forecast, with its outcome where that is
    known.  Columns are detected by their names (`orcast.frame.names`).  Each model and series has a recalibrator of
    its own, with a guarantee of its own.  A long frame has a row for each quantile or sample
    (`orcast.frame.hub`).

    A forecast uses the outcomes that were known when it was issued.  Without issue times **each outcome counts as known
    before the next forecast**.  If forecasts of a whole day were issued together, that is too optimistic: pass
    ``cutoff`` or ``issued_every``.  With these there is a recalibrator for each horizon, counted in steps of the
    series; irregular times are counted as the first, second, ... time of each cutoff.

    Parameters
    ----------
    df
        Data frame.
    target
        Frame of outcomes, if they are not beside the forecasts; rows are matched by time and by all columns of the same
        name.
    y, model, series, time, cutoff, horizon, known
        Names of columns that are not detected: outcomes, forecasts (a name, several, or the columns of each model),
        series (a name or several), the time that a row is about, the issue time, the number of steps ahead, and when
        the outcome was known (default: at its time).
    lag
        Time from a row's time to the publication of its outcome: ``"4D"``, ``"36h"``, a timedelta, or a number.
    issued_every
        Rows that are issued together, just before the first of them: a number of rows, or ``"daily"``, ``"weekly"``,
        ``"12h"`` (in the time zone of the column; UTC if it has one).
    nowcast
        Allow issue times after the row's time; needs ``known`` or ``lag``.
    low, high
        Bounds of the outcomes: a number, a column, or numbers by series.
    levels
        Levels of additional quantiles.
    payoff, oracle
        Notion of calibration (its features are columns) and method; see `Recalibrator`.
    state
        Path or `PanelState` to continue from; it is written at the end, unless an error is raised.  Rows without an
        outcome stay pending.  Known rows get their old answers.
    replace
        Write the forecasts into the detected columns.
    workers
        Number of threads; the results do not depend on it.
    progress
        True for a line on stderr, or a callback of an activity and the share that is done.
    outside
        Outcomes outside the bounds: "report" (ignore and warn), "clip" or "raise".
    pool
        Series that learn together: True for all, False for none, or columns whose values are equal.  Certificates and
        guarantees stay those of each series.
    randomised
        Seed; quantiles are randomised by one draw per row (`Forecast.randomised`).

    Returns
    -------
    frame
        Frame of the same type with the forecasts of each model M as ``M_orcast`` (``orcast_`` before columns without a
        model) and four more columns: ``_holds`` (the certificate), ``_promised`` (the bound on the miscalibration after
        this row), ``_miscalibration`` (its value) and ``_status``: "ok", "pending" (no outcome yet), "no forecast",
        "outside" (the outcome is outside the bounds), "given up" (it came long after later ones), "seen" (answered by
        an earlier call), "corrected" (the outcome changed), "late" (before rows that were answered) or "lost" (too many
        rows were pending).

    Notes
    -----
    The i-th of n sorted members becomes the quantile at (i - 0.5) / n.  A point forecast is read as Gaussian, with the
    spread of its known errors (`orcast.residuals`).

    Examples
    --------
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
    options = FrameOptions(low, high, levels, payoff, outside, oracle, timing, pool, randomised)
    names = {"y": y, "series": series, "time": time, "cutoff": cutoff, "horizon": horizon, "known": known}
    names["model"] = model
    frame = Frame(df, target, y=y, time=time)
    with open_state(state) as panel:
        run = play_frame(frame, names, options, panel, workers, progress)
        result: AnyFrame = run.result(bool(replace))
        if panel is not None:
            run.commit(panel)
    return result


def recalibrate_partition(df: AnyFrame, state: bytes | None = None, **options: Any) -> tuple[AnyFrame, bytes]:
    """Recalibrate a partition from a state to the next: the unit of work of Spark, Ray and Dask.

    A pure function: it reads and writes nothing, and equal arguments give equal results.

    Parameters
    ----------
    df
        Partition with all rows of its series.
    state
        State that the last call returned; None for the first.
    **options
        Options of `recalibrate`.

    Returns
    -------
    frame, state
        Frame with the forecasts, and the state as bytes with a checksum.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"ds": [1, 2], "y": [5.0, None], "mean": [4.0, 5.0], "sd": [1.0, 1.0]})
    >>> first, state = recalibrate_partition(frame)
    >>> again, _ = recalibrate_partition(frame.assign(y=[5.0, 6.0]), state)
    >>> again["orcast_status"].tolist()
    ['seen', 'ok']
    """
    panel = PanelState() if state is None else PanelState.from_bytes(state)
    result = recalibrate(df, state=panel, **options)
    return result, panel.to_bytes()
