"""Long tables, a row for each quantile or sample, and outcomes in a table of their own."""

import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import orcast as oc
from helpers import SENTENCE
from orcast.frame import recalibrate
from orcast.frame.reader import Frame, find_in

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
WEEKS = [str(day) for day in np.arange("2024-01-06", "2024-06-01", 7, dtype="datetime64[D]")]


def hub(horizons: tuple[int, ...] = (1, 2), models: tuple[str, ...] = ("",), seed: int = 0) -> tuple[Any, Any]:
    """A model output and the target data of a hub: two locations, weekly, at several horizons."""
    rng = np.random.default_rng(seed)
    week = {day: i for i, day in enumerate(WEEKS)}
    seen = {(place, day): float(rng.poisson(50)) for place in ("01", "US") for day in WEEKS}
    rows = [
        {
            **({"model_id": model} if model else {}),
            "reference_date": reference,
            "target": "wk inc flu hosp",
            "horizon": horizon,
            "target_end_date": WEEKS[week[reference] + horizon],
            "location": place,
            "output_type": "quantile",
            "output_type_id": str(level),
            "value": 50 + 4 * (level - 0.5) + len(model),
        }
        for model in models
        for reference in WEEKS[1:-3]
        for horizon in horizons
        for place in ("01", "US")
        for level in LEVELS
    ]
    target = [
        {"as_of": "2025-01-01", "target_end_date": day, "location": place, "observation": y}
        for (place, day), y in seen.items()
    ]
    return pl.DataFrame(rows), pl.DataFrame(target)


def wide(output: Any, target: Any) -> Any:
    """The same forecasts, a row each, made by polars."""
    keys = ["reference_date", "horizon", "target_end_date", "location"]
    table = output.pivot("output_type_id", index=keys, values="value", maintain_order=True)
    table = table.rename({str(level): f"q{level}" for level in LEVELS})
    return table.join(target.drop("as_of"), on=["target_end_date", "location"], maintain_order="left")


def test_a_hub_is_read_as_its_wide_form_would_be() -> None:
    output, target = hub()
    long = recalibrate(output, target=target, low=0)
    names = {"series": "location", "time": "target_end_date", "cutoff": "reference_date", "horizon": "horizon"}
    other = recalibrate(wide(output, target), y="observation", low=0, **names)
    assert long[output.columns].equals(output)
    assert long.columns[len(output.columns) :] == [
        *("observation", "orcast_value", "orcast_holds"),
        *("orcast_promised", "orcast_miscalibration", "orcast_status", "orcast_alarm", "orcast_base_alarm"),
    ]
    assert len(other) * len(LEVELS) == len(long)
    for i, level in enumerate(LEVELS):
        rows = long[i :: len(LEVELS)]
        assert rows["orcast_value"].to_list() == other[f"orcast_q{level}"].to_list()
        assert rows["orcast_promised"].to_list() == other["orcast_promised"].to_list()
        assert rows["orcast_status"].to_list() == other["orcast_status"].to_list()
    (evaluation,) = oc.check(long, low=0)
    (expected,) = oc.check(other, low=0, y="observation", **names)
    assert evaluation.rows == expected.rows > 0
    assert np.array_equal(np.sort(evaluation.after, axis=0), np.sort(expected.after, axis=0))


def test_the_order_of_the_rows_does_not_matter_and_pandas_reads_the_same() -> None:
    pytest.importorskip("pyarrow")  # by which polars makes frames of pandas
    output, target = hub()
    expected = recalibrate(output, target=target)
    mixed = output.with_row_index().sample(fraction=1.0, shuffle=True, seed=1)
    places = mixed["index"].to_numpy()
    frame = mixed.drop("index").to_pandas().set_index(pd.Index(places[::-1]))
    found = recalibrate(frame, target=target.to_pandas())
    assert found.index.equals(frame.index)
    assert np.array_equal(found["orcast_value"].to_numpy(), expected["orcast_value"].to_numpy()[places])


def test_several_models_stand_side_by_side() -> None:
    output, target = hub(models=("team-a", "team-a-b"))
    frame = Frame(output, target)
    layout = find_in(frame)
    assert [form.model for form in layout.forms] == ["team-a", "team-a-b"]
    both = recalibrate(output, target=target)
    for model in ("team-a", "team-a-b"):
        alone = recalibrate(output.filter(pl.col("model_id") == model).drop("model_id"), target=target)
        assert both.filter(pl.col("model_id") == model)["orcast_value"].to_list() == alone["orcast_value"].to_list()


@pytest.mark.parametrize("horizons", [(1, 2), (0, 1), (-1, 0, 1)])
def test_no_forecast_counts_what_it_is_about_as_known(horizons: tuple[int, ...]) -> None:
    output, target = hub(horizons)
    back = 7 * (1 - min(horizons))
    issued = pl.col("reference_date").str.to_date() - pl.duration(days=back)
    told = output.with_columns(issued=issued).drop("reference_date")
    found, expected = (recalibrate(each, target=target) for each in (output, told))
    assert found["orcast_value"].to_list() == expected["orcast_value"].to_list()


def test_rows_of_other_types_pass_through() -> None:
    output, target = hub()
    point = output.head(1).with_columns(
        output_type=pl.lit("mean"), output_type_id=pl.lit(None, pl.String), value=pl.lit(50.0)
    )
    made = recalibrate(pl.concat((point, output)), target=target)
    assert made["orcast_value"][0] is None
    assert made["orcast_status"][0] == "no forecast"
    assert made["orcast_value"][1:].to_list() == recalibrate(output, target=target)["orcast_value"].to_list()


def test_samples_are_members_however_they_are_numbered() -> None:
    rng = np.random.default_rng(3)
    rows = [
        {"date": day, "output_type": "sample", "output_type_id": f"{9 * k + i}", "value": float(v), "observed": 1.0 * k}
        for k, day in enumerate(WEEKS)
        for i, v in enumerate(rng.normal(size=9))
    ]
    made = recalibrate(pl.DataFrame(rows))
    layout = find_in(pl.DataFrame(rows))
    assert (layout.forms[0].kind, len(layout.forms[0].columns), layout.y, layout.series) == (
        *("members", 9, "observed"),
        (),
    )
    assert made["orcast_value"].null_count() == 0


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
    wrong: list[tuple[Any, Any, dict[str, Any], str]] = [
        (pl.concat((output, output.head(1))), target, {}, "for each quantile of a forecast, got more in row 340"),
        (output.with_columns(output_type=pl.lit("pmf")), target, {}, r"'quantile' or 'sample', got 'pmf'"),
        (
            output.with_columns(output_type_id=pl.lit("2.5")),
            target,
            {},
            "between 0 and 1 in 'output_type_id', got '2.5'",
        ),
        (output.with_columns(note=pl.int_range(pl.len())), target, {}, "'note'"),
        (output, target.drop("target_end_date"), {}, "a column of times of the outcomes"),
        (output, target.with_columns(y=pl.lit(1.0)), {}, "expected one column of numbers as outcomes"),
        (output.with_columns(observation=pl.lit(1.0)), target, {}, "'observation' in both"),
        (output, target, {"levels": [0.1]}, "expected levels of the rows of a long table"),
        (output, None, {}, "expected a column of outcomes"),
    ]
    for frame, outcomes, options, match in wrong:
        with pytest.raises((TypeError, ValueError), match=match) as caught:
            recalibrate(frame, target=outcomes, **options)
        assert re.match(SENTENCE, str(caught.value)), str(caught.value)
