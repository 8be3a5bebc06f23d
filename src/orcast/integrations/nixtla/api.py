"""A frame of forecasts and its history, recalibrated."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeVar

from orcast.integrations.nixtla.combined_frame import CombinedFrame
from orcast.integrations.nixtla.input_frames import CUTOFF, ID, TARGET, TIME, InputFrame
from orcast.panel.frame import Frame
from orcast.panel.frame_run import FrameOptions, FrameRun
from orcast.panel.row_times import Timing
from orcast.panel.state import PanelState, open_state
from orcast.panel.workers import Progress, worker_count
from orcast.payoffs import Payoff
from orcast.validation import number, short

AnyFrame = TypeVar("AnyFrame")


def recalibrate(
    forecasts: AnyFrame,
    history: Any = None,
    *,
    model: Any = None,
    low: Any = None,
    high: Any = None,
    lag: Any = None,
    level: Sequence[float] | None = None,
    payoff: Payoff | None = None,
    state: PanelState | str | os.PathLike[str] | None = None,
    replace: bool = True,
    outside: str = "report",
    pool: Any = True,
    workers: int | None = None,
    progress: bool | Progress = False,
    id_col: str = ID,
    time_col: str = TIME,
    target_col: str = TARGET,
) -> AnyFrame:
    """Recalibrate a frame of forecasts by what came of earlier ones; the same frame comes back, with better numbers.

    ``forecasts`` is what ``predict`` or ``forecast`` returned, for any number of series and models.  ``history`` is

    - what ``cross_validation`` returned, with the same models and levels, overlapping windows or not, and fitted anew
      for each window (``refit=True``, as it is by default) if the forecasts are of models that are fitted anew.  A
      warning says so if the intervals are clearly not as wide as there; or
    - outcomes alone (``unique_id``, ``ds``, ``y``, such as the frame that the models were fitted to), if a ``state``
      remembers the forecasts that they belong to.

    Each model, series and step ahead has a game of its own, which the same step of earlier windows has taught: a step
    beyond those of the history, and a series that is not in it, begin with what the others learnt.  No forecast knows
    an outcome of its first time or later.  Steps are counted by the times, so rows may be missing; where the times do
    not tell the step, one sentence says which column settles it.  A frame of ``cross_validation`` may also be given
    alone, and each of its windows then knows the outcomes up to its cutoff: how good the forecasts would have been.

    ``lag`` (``"4D"``, as for :func:`orcast.recalibrate`) says how long after its time an outcome is known, if not at
    once: a window then knows the outcomes up to so long before its cutoff.

    ``level`` are intervals in percent, as everywhere in Nixtla, beside those that are there; models without intervals
    get those of 80 and 95, from their past errors (beside others with intervals only if ``model`` names them).  The
    calibrated numbers take the place of the model's (the column of the model itself holds the median then, or the mean
    if there is a column ``MODEL-median``).  ``replace=False`` leaves these alone, and puts columns named
    ``MODEL_orcast`` beside them, with the certificate of each row.

    ``state`` is a file, or a :class:`orcast.PanelState`, that goes on from call to call:

        recalibrate(sf.forecast(df=df, h=24, level=[90]), cv, state="load.orcast")              # the first day
        recalibrate(sf.forecast(df=newer, h=24, level=[90]), newer, state="load.orcast")        # each day after it

    It is the same as for :func:`orcast.recalibrate`, as are ``model``, ``low``, ``high``, ``payoff``, ``outside``,
    ``pool``, ``workers`` and ``progress``: a frame of ``cross_validation`` has the same answers from both.  So all
    series learn together, also from those that are in the history alone.  ``pool=False`` lets each learn by itself,
    from its own rows only; the columns of ``pool="region"`` are in both frames.  Messages count the rows of the history
    after those of the forecasts.

    >>> import numpy as np, pandas as pd
    >>> days = pd.date_range("2026-01-01", periods=62)
    >>> y = 100 + np.random.default_rng(0).normal(0, 10, 60)
    >>> forecast = {"ETS": 100.0, "ETS-lo-90": 95.0, "ETS-hi-90": 105.0}  # far too narrow
    >>> cv = pd.DataFrame({"unique_id": "A", "ds": days[1:60], "cutoff": days[:59], "y": y[1:]}).assign(**forecast)
    >>> after = recalibrate(pd.DataFrame({"unique_id": "A", "ds": days[60:61]}).assign(**forecast), cv)
    >>> list(after.columns), bool(after["ETS-hi-90"][0] - after["ETS-lo-90"][0] > 25)
    (['unique_id', 'ds', 'ETS', 'ETS-lo-90', 'ETS-hi-90'], True)
    """
    names = {ID: id_col, TIME: time_col, TARGET: target_col, CUTOFF: CUTOFF}
    given = InputFrame(forecasts, names, "forecasts")
    past = None if history is None else InputFrame(history, names, "history")
    options = FrameOptions(low, high, _levels(level), payoff, outside, timing=Timing(lag), pool=pool).checked()
    count = worker_count(workers)
    with open_state(state) as panel:
        combined = CombinedFrame(given, past, panel, model, payoff, options.pool)
        run = FrameRun(Frame(combined.frame()), combined.layout, options, panel, places=True)
        run.play(count, progress)
        run.warn()
        combined.report(run, model, (low, high), outside, replace=bool(replace))
        result: AnyFrame = given.frame.with_columns(
            combined.columns(run, replace=bool(replace)),
            without=() if replace else combined.layout.earlier(given.frame.table.columns),
        )
        if panel is not None:
            run.commit(panel)
    return result


def _levels(level: Any) -> list[float] | None:
    """Levels of quantiles from intervals in percent.

    >>> _levels([80, 95])
    [0.025, 0.1, 0.9, 0.975]
    """
    if level is None:
        return None
    if isinstance(level, (str, bytes, Mapping)) or not isinstance(level, (Iterable, Real)):
        raise TypeError(f"expected level= as intervals in percent, such as [80, 95], got {short(level)}")
    every = list(level) if isinstance(level, Iterable) else [level]
    found = []
    for each in every:
        share = number(each, "level in percent")
        if not 0.0 < share < 100.0:
            raise ValueError(f"expected levels in percent, between 0 and 100, got {short(each)}")
        found += [round((100.0 - share) / 200.0, 12), round((100.0 + share) / 200.0, 12)]
    return sorted(set(found))
