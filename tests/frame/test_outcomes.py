"""Outcomes in a table of their own."""

import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import orcast as oc
from helpers import SENTENCE
from orcast.frame import recalibrate

WEEKS = [str(day) for day in np.arange("2024-01-06", "2024-06-01", 7, dtype="datetime64[D]")]
QUANTILES = ["orcast_0.05", "orcast_0.5", "orcast_0.95"]


def hub(horizons: tuple[int, ...] = (1, 2), seed: int = 0) -> tuple[Any, Any]:
    """A model output of a hub with a row for each forecast, and its target data: two locations, weekly."""
    rng = np.random.default_rng(seed)
    seen = {(place, day): float(rng.poisson(50)) for place in ("01", "US") for day in WEEKS}
    rows = [
        {
            "reference_date": WEEKS[i],
            "target": "wk inc flu hosp",
            "horizon": horizon,
            "target_end_date": WEEKS[i + horizon],
            "location": place,
            **{str(level): 50 + 4 * (level - 0.5) for level in (0.05, 0.5, 0.95)},
        }
        for i in range(1, len(WEEKS) - 2)
        for horizon in horizons
        for place in ("01", "US")
    ]
    target = [
        {"as_of": "2025-01-01", "target_end_date": day, "location": place, "observation": y}
        for (place, day), y in seen.items()
    ]
    return pl.DataFrame(rows), pl.DataFrame(target)


def test_outcomes_are_put_beside_the_forecasts() -> None:
    output, target = hub()
    found = recalibrate(output, target=target, low=0)
    beside = output.join(target.drop("as_of"), on=["target_end_date", "location"], maintain_order="left")
    expected = recalibrate(beside, y="observation", low=0)
    assert found.select(expected.columns).equals(expected)
    assert (found["orcast_status"] == "ok").all()
    (evaluation,) = oc.check(found, low=0)
    assert evaluation.rows == len(output)
    plain = [pd.DataFrame(each.to_dict(as_series=False)) for each in (output[::-1], target)]  # without pyarrow
    mixed = recalibrate(plain[0], target=plain[1], low=0)
    assert np.array_equal(mixed[QUANTILES].to_numpy(), expected.select(QUANTILES).to_numpy()[::-1])


@pytest.mark.parametrize("horizons", [(1, 2), (0, 1), (-1, 0, 1)])
def test_no_forecast_counts_what_it_is_about_as_known(horizons: tuple[int, ...]) -> None:
    output, target = hub(horizons)
    issued = pl.col("reference_date").str.to_date() - pl.duration(days=7 * (1 - min(horizons)))
    told = output.with_columns(issued=issued).drop("reference_date")
    found, expected = (recalibrate(each, target=target) for each in (output, told))
    assert found.select(QUANTILES).equals(expected.select(QUANTILES))


def test_the_newest_outcome_counts() -> None:
    output, target = hub()
    early = target.with_columns(as_of=pl.lit("2024-01-01"), observation=pl.lit(0.0))
    expected = recalibrate(output, target=target)["observation"]
    for both in ((early, target), (target, early)):
        with pytest.warns(UserWarning, match=r"the publication dates \(as_of\) are not used: give the delay by lag="):
            assert recalibrate(output, target=pl.concat(both))["observation"].equals(expected)
    with pytest.raises(ValueError, match=r"expected one outcome for each .*, got 0 and"):
        recalibrate(output, target=pl.concat((early, target)).drop("as_of"))


def test_wide_forecasts_may_have_outcomes_elsewhere_too() -> None:
    rng = np.random.default_rng(5)
    index = pd.MultiIndex.from_product([["a", "b"], pd.date_range("2024-01-01", periods=20)])
    index.names = ["item_id", "timestamp"]
    data = pd.DataFrame({"target": rng.normal(size=40)}, index=index)
    made = pd.DataFrame({"mean": 0.0, "0.1": -1.0, "0.5": 0.0, "0.9": 1.0}, index=index).iloc[::-1]
    after = recalibrate(made, target=data)
    assert np.array_equal(after["observation"].to_numpy(), data["target"].to_numpy()[::-1])
    assert (after["orcast_status"] == "ok").all()
    later = recalibrate(made, target=data.groupby("item_id").head(15))
    assert (later["orcast_status"] == "pending").sum() == 10


def test_what_is_refused_is_said_in_one_sentence() -> None:
    output, target = hub()
    wrong: list[tuple[Any, Any, str]] = [
        (output, target.drop("target_end_date"), "a column of times of the outcomes"),
        (output, target.with_columns(y=pl.lit(1.0)), "expected one column of numbers as outcomes"),
        (output.with_columns(observation=pl.lit(1.0)), target, "'observation' in both"),
        (output, None, "expected a column of outcomes"),
    ]
    for frame, outcomes, match in wrong:
        with pytest.raises((TypeError, ValueError), match=match) as caught:
            recalibrate(frame, target=outcomes)
        assert re.match(SENTENCE, str(caught.value)), str(caught.value)
