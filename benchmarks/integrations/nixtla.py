"""Frames of Nixtla's: a cross-validation that teaches, and a forecast of tomorrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import orcast as oc
from benchmarks.integrations.case import ROUNDS, Case, Work, lagged, nothing

HORIZON = 4


def cases() -> Iterator[Case]:
    import pandas as pd

    from orcast.integrations.nixtla import recalibrate

    _, y = lagged(ROUNDS + HORIZON)
    windows = ROUNDS // HORIZON
    hours = pd.date_range("2013-01-01", periods=len(y) + HORIZON, freq="h")
    first = HORIZON * np.arange(1, windows + 1)
    time = (first[:, None] + np.arange(HORIZON)).ravel()

    def said(made: Any, time: Any) -> Any:
        frame = pd.DataFrame({"unique_id": "JFK", "ds": hours[time], "ETS": y[made]})
        return frame.assign(**{"ETS-lo-90": frame["ETS"] - 8.0, "ETS-hi-90": frame["ETS"] + 8.0})

    made = np.repeat(first - 1, HORIZON)
    cv = said(made, time).assign(cutoff=hours[made], y=y[time])
    last = int(time[-1])
    tomorrow = said(np.full(HORIZON, last), last + 1 + np.arange(HORIZON))

    def frames() -> Work:
        return lambda: nothing(pd.concat([cv, tomorrow.assign(cutoff=hours[last], y=np.nan)]))

    def by_hand() -> Work:
        def work() -> None:
            both = pd.concat([cv, tomorrow.assign(cutoff=hours[last], y=np.nan)], ignore_index=True)
            nothing(oc.recalibrate(both, low=0, high=100, replace=True).tail(HORIZON))

        return work

    yield Case(
        "Nixtla, tomorrow after the past",
        frames,
        by_hand,
        lambda: lambda: nothing(recalibrate(tomorrow, cv, low=0, high=100)),
    )

    def alone() -> Work:
        return lambda: nothing(oc.recalibrate(cv, low=0, high=100, replace=True))

    yield Case(
        "Nixtla, a cross-validation alone",
        lambda: lambda: None,
        alone,
        lambda: lambda: nothing(recalibrate(cv, low=0, high=100)),
    )
