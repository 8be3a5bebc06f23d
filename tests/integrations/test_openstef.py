"""OpenSTEF: a calibrator as a pipeline step; days one by one are one frame, and transform changes nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import orcast as oc
from helpers import SENTENCE
from orcast.integrations.openstef import QuantileCalibrator

LEVELS = ["quantile_P05", "quantile_P50", "quantile_P95"]


def loads(days: int = 30) -> pd.DataFrame:
    """Quarter-daily loads of some days, with day-ahead quantiles that are too narrow and too low."""
    times = pd.date_range("2026-01-01", periods=4 * days, freq="6h", tz="UTC", name="timestamp")
    load = 100 + np.random.default_rng(0).normal(0, 10, len(times))
    return pd.DataFrame({"quantile_P05": 85.0, "quantile_P50": 92.0, "quantile_P95": 99.0, "load": load}, times)


@pytest.mark.parametrize("longer", [False, True], ids=["the last day", "the whole history"])
def test_days_one_by_one_are_one_frame(longer: bool, tmp_path: Path) -> None:
    frame, path = loads(), tmp_path / "load.orcast"
    options: dict[str, Any] = {"issued_every": "daily", "low": 0}
    expected = oc.recalibrate(frame, y="load", replace=True, **options)[LEVELS]
    QuantileCalibrator(state=path, **options).fit(frame[:80])
    for row in range(80, 120, 4):
        calibrator = QuantileCalibrator(state=path, **options)  # a new process every day
        before = calibrator.state.to_bytes()
        today = calibrator.transform(frame[row : row + 4].drop(columns="load"))
        assert calibrator.state.to_bytes() == before
        pd.testing.assert_frame_equal(today, expected[row : row + 4])
        calibrator.fit(frame[0 if longer else row : row + 4])
    coverage = frame["load"][40:].between(expected["quantile_P05"][40:], expected["quantile_P95"][40:]).mean()
    assert 0.8 < coverage < 1.0 - 1e-9
    whole = QuantileCalibrator(**options).fit_transform(frame)
    pd.testing.assert_frame_equal(whole, expected.assign(load=frame["load"]))


def test_series_and_polars() -> None:
    frame = pd.concat([loads().assign(location=name) for name in "ab"]).reset_index()
    options: dict[str, Any] = {"issued_every": "daily", "series": "location", "time": "timestamp"}
    same = pl.DataFrame({name: frame[name].to_list() for name in frame})
    one, other = (QuantileCalibrator(**options).fit_transform(each) for each in (frame, same))
    assert isinstance(other, pl.DataFrame)
    assert other.columns == list(frame.columns)
    np.testing.assert_array_equal(one[LEVELS].to_numpy(), other.select(LEVELS).to_numpy())


def test_bad_input_changes_nothing() -> None:
    frame, calibrator = loads(), QuantileCalibrator(issued_every="daily", low=0)
    with pytest.raises(ValueError, match="expected fit before transform"):
        calibrator.transform(frame)
    calibrator.fit(frame[:40])
    before = calibrator.state.to_bytes()
    for bad in (frame.drop(columns="load"), frame.drop(columns=LEVELS), pd.concat([frame[40:], frame[40:]])):
        with pytest.raises(ValueError, match=SENTENCE):
            calibrator.fit(bad)
    assert calibrator.state.to_bytes() == before
