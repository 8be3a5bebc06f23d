"""What else would have come of the same forecasts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import orcast as oc
from orcast.evidence import collect, difference, share_without_memory, verdict, with_replays
from orcast.panel.columns import find_in
from orcast.panel.frame_run import FrameOptions


def day_ahead(days: int = 60) -> pd.DataFrame:
    """24 forecasts a day, whose errors grow through the day."""
    rng = np.random.default_rng(4)
    ds = pd.date_range("2026-01-01", periods=24 * days, freq="h")
    y = 50.0 + np.cumsum(rng.normal(size=(days, 24)), axis=1).ravel()
    return pd.DataFrame({"ds": ds, "y": y, "q0.1": 47.0, "q0.5": 50.0, "q0.9": 53.0})


def replayed(frame: pd.DataFrame, **options: Any) -> Any:
    out = oc.recalibrate(frame, **options)
    (found,) = with_replays(collect(out), frame, find_in(frame), FrameOptions())
    return found


def test_a_reading_as_blocks_is_what_recalibrate_gives_for_it() -> None:
    frame = day_ahead()
    found = replayed(frame)
    blocks = oc.recalibrate(frame, issued_every=24)
    change = difference(collect(blocks, issued_every=24)[0])
    assert change is not None
    assert found.in_blocks == pytest.approx(change.after, rel=1e-12)
    flattering = difference(found)
    assert flattering is not None
    assert flattering.after < 0.6 * flattering.before < 0.7 * change.after
    assert "look like those of forecasts issued 24 at a time; played so" in verdict(found)[1]


def test_what_remains_without_the_memory_of_errors() -> None:
    """A walk: nearly all of the gain is knowledge of the last outcome.  A spread that is wrong: all of it remains."""
    rng = np.random.default_rng(0)
    n = 600
    walk = pd.DataFrame({"ds": range(n), "y": np.cumsum(rng.normal(size=n)), "q0.1": -9.0, "q0.5": 0.0, "q0.9": 9.0})
    wide = walk.assign(y=rng.normal(size=n))
    shares = [share_without_memory(replayed(frame)) for frame in (walk, wide)]
    assert shares[0] is not None
    assert shares[1] is not None
    assert shares[0] < 0.85
    assert shares[1] > 0.9
    played = oc.recalibrate(walk, oracle=oc.Committee(trackers=False))
    change = difference(collect(played)[0])
    assert change is not None
    assert replayed(walk).without_memory == pytest.approx(change.after, rel=1e-12)
