"""Random frames as files may be: a right answer for every row, or one clear message; never a silent loss of rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import orcast as oc
from frames import BESIDE, FORMS, Plan, inputs, outputs, panel, twin
from helpers import SENTENCE
from orcast.frame.statuses import Status

TEXTS = {status.text for status in Status}
START = pd.Timestamp("2024-03-25")  # days on which clocks change in Europe lie ahead
KINDS = ("whole numbers", "numbers", "dates", "zone", "text", "offsets", "none")
FAULTS = ("twice", "mixed zones", "text in y", "text in a forecast", "no cutoff", "no time", "no series")


def quietly(frame: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return oc.recalibrate(frame, pool=False)


def _forecasts(frame: pd.DataFrame) -> list[str]:
    return [name for name in outputs(frame) if not name.endswith(BESIDE)]


class Case:
    """A random frame: ``told`` are the right answers by row, ``refused`` the message if it is invalid."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = np.random.default_rng(seed)
        self.form = str(rng.choice(FORMS))
        events = self.form in ("binary", "labels")
        steps = int(rng.choice([1, 2, 5, 9]))
        horizons = int(rng.choice([0, 0, 1, 3] if events else [0, 0, 1]))
        plan = Plan(seed, self.form, int(rng.integers(1, 4)), steps, horizons, holes=float(rng.choice([0.0, 0.3])))
        frame = panel(plan)
        empty = rng.random(len(frame)) < rng.choice([0.0, 0.2])
        frame.loc[empty, inputs(self.form, "M0")] = np.nan
        self.empty = frame.index[empty]
        self.told = twin(frame, self.form, "M0")
        self.y = frame["y"]
        self.refused: str | None = None
        kind = str(rng.choice(KINDS[:-1] if horizons or self.form == "point" else KINDS))
        if not events and kind in ("dates", "zone", "text", "offsets"):
            # the calendar has seasons, which the twin does not know: plain dates in their order instead
            plain = quietly(self.timed(frame, "dates"))
            self.told = {label: (row[_forecasts(plain)].tolist(), None) for label, row in plain.iterrows()}
        frame = self.timed(frame, kind)
        if rng.random() < 0.4:
            frame = self.damaged(frame, str(rng.choice(FAULTS)))
        if kind != "none":
            frame = frame.sample(frac=1.0, random_state=seed)
        self.frame = frame

    def timed(self, frame: pd.DataFrame, kind: str) -> pd.DataFrame:
        """Times of another kind; they go on in days."""
        if kind == "none":
            return frame.drop(columns="ds")
        columns = [name for name in ("ds", "cutoff") if name in frame]
        dates = {name: START + pd.to_timedelta(frame[name], "D") for name in columns}
        zoned = {name: date.dt.tz_localize("Europe/Berlin") for name, date in dates.items()}
        made: dict[str, Any] = {
            "whole numbers": frame,
            "numbers": frame[columns] * 1.0,
            "dates": dates,
            "zone": zoned,
            "text": {name: date.dt.strftime("%Y-%m-%d") for name, date in dates.items()},
            "offsets": {name: date.map(lambda each: each.isoformat()) for name, date in zoned.items()},
        }
        return frame.assign(**{name: made[kind][name] for name in columns})

    def damaged(self, frame: pd.DataFrame, fault: str) -> pd.DataFrame:
        """A fault that somebody has to be told of."""
        row = int(self.rng.integers(len(frame)))
        if fault == "twice" and "ds" in frame and self.form not in ("binary", "labels"):
            self.refused = "expected one row of series"
            return pd.concat((frame, frame[row : row + 1]), ignore_index=True)
        if fault == "mixed zones" and "ds" in frame and isinstance(frame.ds[0], str) and len(frame) > 1:
            self.refused = "expected dates with a zone or without in 'ds', got both"
            other = "2024-05-01T00:00+02:00" if "+" not in frame.ds[0] else "2024-05-01"
            return frame.assign(ds=frame.ds.where(frame.index != row, other))
        if fault.startswith("text") and self.form != "labels":
            name = (
                "y" if fault == "text in y" or self.form == "point" else str(self.rng.choice(inputs(self.form, "M0")))
            )
            self.refused = "got text '"
            return frame.assign(**{name: frame[name].astype(object).where(frame.index != row, "12,5")})
        name = {"no cutoff": "cutoff", "no time": "ds", "no series": "unique_id"}.get(fault)
        if name in frame and pd.api.types.is_integer_dtype(frame[name]) is False:
            self.refused = f"in every row of {name!r}, got none in row"
            return frame.assign(**{name: frame[name].where(frame.index != row)})
        return frame

    def check(self, polars: bool) -> None:
        given: Any = _polars(self.frame) if polars else self.frame
        if self.refused is not None:
            with pytest.raises((TypeError, ValueError), match=SENTENCE) as caught:
                quietly(given)
            assert self.refused in str(caught.value)
            return
        out = quietly(given)
        table = pd.DataFrame(out.to_dict(as_series=False)) if polars else out
        table = table.set_axis(self.frame.index)
        assert len(table) == len(self.y)
        assert table["unique_id"].tolist() == self.frame["unique_id"].tolist()
        self.check_rows(table)

    def check_rows(self, table: pd.DataFrame) -> None:
        names = _forecasts(table)
        assert set(table["M0_orcast_status"]) <= TEXTS
        for label, row in table.iterrows():
            if label in self.empty:
                assert row["M0_orcast_status"] == "no forecast"
                continue
            known = self.y[label] is not None and self.y[label] == self.y[label]
            assert row["M0_orcast_status"] == ("ok" if known else "pending")
            np.testing.assert_allclose(row[names].astype(float), self.told[label][0], rtol=1e-12, atol=1e-12)


def _polars(frame: pd.DataFrame) -> pl.DataFrame:
    """The same frame; a column of numbers and text is all text."""
    columns = {}
    for name in frame:
        values = [None if value is pd.NaT or value != value else value for value in frame[name]]
        some_text = any(isinstance(value, str) for value in values)
        columns[name] = [None if value is None else str(value) for value in values] if some_text else values
    return pl.DataFrame(columns)


@pytest.mark.parametrize("seed", range(60))
def test_random_frames(seed: int) -> None:
    Case(seed).check(polars=seed % 2 == 1)
