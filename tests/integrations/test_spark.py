"""Spark: tables and streams give what `orcast.recalibrate` gives, to the last bit, whatever the types and options."""

import datetime
import decimal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import orcast as oc
from helpers import SENTENCE
from panels import Plan, panel
from sparks import same, start

pytest.importorskip("pyspark")

from pyspark.errors import PythonException
from pyspark.sql import functions as F

from orcast.integrations.spark import recalibrate, recalibrate_stream

pytestmark = [
    # Spark's own sockets and files
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
]

KEY = ["unique_id", "ds"]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    session = start("local[2]", tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


def quietly(frame: pd.DataFrame, **options: Any) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return oc.recalibrate(frame, workers=1, **{"pool": False, **options})


def check(df: Any, by: list[str] = KEY, **options: Any) -> pd.DataFrame:
    """What comes of a table, after it was compared with what comes of the same in pandas."""
    got = recalibrate(df, **options).toPandas()
    options.pop("partitions", None)
    same(got, quietly(df.toPandas(), **options), by)
    return got


def every_kind(seed: int, **plan: Any) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Forecasts of every kind of a quantity in one frame, with all that can happen to a row; and their models."""
    own = {form: panel(Plan(seed, form, **plan)) for form in ("quantiles", "normal", "members", "point")}
    rows = own["normal"]
    shared = [name for name in ("unique_id", "ds", "cutoff", "y") if name in rows]
    frame = rows[shared].copy()
    for form, each in own.items():
        for name in each.columns.difference(shared):
            frame[form + name] = each[name].reindex(frame.index)
    model = {
        "q": {0.1: "quantilesM0-lo-80", 0.5: "quantilesM0", 0.9: "quantilesM0-hi-80"},
        "n": {"mean": "normalM0_mean", "sd": "normalM0_std"},
        "m": [f"membersM0_member_{i}" for i in range(1, 5)],
        "p": "pointM0",
    }
    return frame, model


# --- tables


@pytest.mark.parametrize("horizons", [0, 2])
def test_every_kind_of_a_quantity(spark: Any, horizons: int) -> None:
    frame, model = every_kind(1, series=5, steps=6, horizons=horizons, holes=0.2, gaps=0.1, strays=0.1)
    by = [*KEY, "cutoff"] if horizons else KEY
    got = check(spark.createDataFrame(frame), by, model=model, low=0, high=100, levels=[0.25, 0.75])
    assert {"ok", "no forecast", "outside", "pending"} <= set(got["n_orcast_status"])


@pytest.mark.parametrize("form", ["binary", "labels"])
def test_probabilities(spark: Any, form: str) -> None:
    frame = panel(Plan(2, form, series=4, steps=5, holes=0.2, gaps=0.1, models=2))
    check(spark.createDataFrame(frame))


def test_bounds_may_be_columns_or_by_series_and_outcomes_are_clipped(spark: Any) -> None:
    frame = panel(Plan(3, "normal", series=4, steps=5, strays=0.2))
    frame["floor"], frame["roof"] = -1.0 - frame["ds"], 120
    df = spark.createDataFrame(frame)
    check(df, low="floor", high="roof")
    low = {f"s{i}": -float(i) for i in range(4)}
    check(df, low=low, high=200)
    check(df, low=pd.Series(low))
    check(df, high=100, outside="clip")


def test_types(spark: Any) -> None:
    """Ids that are numbers or dates, decimals, times with a zone, columns that only pass through."""
    rng = np.random.default_rng(0)
    day = datetime.date(2024, 10, 20)
    rows = [
        (
            s,
            day + datetime.timedelta(days=s),
            datetime.datetime(2024, 10, 26) + datetime.timedelta(hours=6 * t),
            None if rng.random() < 0.2 else decimal.Decimal(int(rng.integers(0, 10**10))).scaleb(-8),
            float(rng.uniform(20, 80)),
            int(rng.integers(1, 9)),
            [1.0, None],
        )
        for s in range(3)
        for t in range(6)
    ]
    schema = "s int, d date, at timestamp, y decimal(20,8), mean float, sd short, more array<double>"
    df = spark.createDataFrame(rows, schema).withColumn("y", F.col("y"))
    out = recalibrate(df, series=["s", "d"], time="at")
    assert out.dtypes[:7] == df.dtypes
    got, floats = out.toPandas(), df.toPandas()
    floats["y"] = [np.nan if each is None else float(each) for each in floats["y"]]
    want = quietly(floats, series=["s", "d"], time="at")
    same(got.drop(columns=["y", "more"]), want.drop(columns=["y", "more"]), ["s", "at"])
    # null and nan are the same
    wrong = df.withColumn("y", F.coalesce(F.col("y").cast("double"), F.lit(float("nan"))))
    again = recalibrate(wrong, series=["s", "d"], time="at").toPandas()
    same(again.drop(columns=["y", "more"]), want.drop(columns=["y", "more"]), ["s", "at"])
    zeros = df.withColumn("z", F.when(F.col("at") < "2024-10-27", -0.0).otherwise(0.0)).where("s = 0")
    got = recalibrate(zeros, series="z", time="at", partitions=7).toPandas()
    same(got[["at", "orcast_mean"]], want[want["s"] == 0][["at", "orcast_mean"]], ["at"])


def test_contexts_and_functions(spark: Any) -> None:
    frame = panel(Plan(5, "quantiles", series=3, steps=8))
    frame["hour"] = frame["ds"] % 3
    df = spark.createDataFrame(frame)
    check(df, payoff=oc.QuantileCalibration(context=oc.by("hour", values=range(3))), low=0, high=100)
    # a function of no module travels by itself, as one of a notebook does
    first = eval("lambda x: [float(x['hour'] == 1)]", {"__name__": "nowhere"})
    odd = oc.QuantileCalibration(context=oc.by(first, size=1))
    check(df, payoff=odd, low=0, high=100)


def test_the_outcomes_settle_what_names_cannot(spark: Any) -> None:
    """`p` beside quantiles is a probability if all outcomes are 0 or 1; one pass over the outcomes tells."""
    frame = pd.DataFrame({"ds": range(4), "y": [0.0, 1.0, 1.0, 0.0], "p": [0.2, 0.7, 0.6, 0.4]})
    check(spark.createDataFrame(frame), ["ds"])
    with pytest.raises(ValueError, match="expected outcomes 0 or 1"):
        recalibrate(spark.createDataFrame(frame.assign(y=[0.0, 1.0, 2.0, 0.0])))
    both = frame.assign(**{"q0.1": 0.0, "q0.9": 1.0})
    with pytest.raises(ValueError, match="expected forecasts of one kind"):
        recalibrate(spark.createDataFrame(both))
    check(spark.createDataFrame(both.assign(y=[0.0, 1.0, 2.0, 0.0])), ["ds"])


def test_pools_are_those_of_a_frame(spark: Any) -> None:
    frame = panel(Plan(6, "quantiles", series=6, steps=8, horizons=2))
    frame["region"] = frame["unique_id"].isin(["s0", "s3", "s4"])
    by = [*KEY, "cutoff"]
    df = spark.createDataFrame(frame)
    together = check(df, by, pool="region", partitions=3)
    whole = check(df, by, pool=True)
    alone = check(df, by)
    names = [name for name in alone.columns if name.startswith("M0_orcast-")]
    rows = [each.sort_values(by)[names].to_numpy() for each in (together, whole, alone)]
    assert all((a != b).any() for a, b in ((rows[0], rows[1]), (rows[0], rows[2]), (rows[1], rows[2])))
    with pytest.raises(ValueError, match="expected pool= as columns of the frame, got 'land'"):
        recalibrate(df, pool="land")


def test_parts_do_not_decide_what_only_all_rows_tell(spark: Any) -> None:
    """One series has two horizons, so those of all are as far as they say; and all times have a zone, or none has."""
    rng = np.random.default_rng(0)
    rows = [(s, t / 2, h) for t in range(6) for s, h in (("a", 1), ("a", 2), ("b", 1), ("c", 1), ("d", 1))]
    frame = pd.DataFrame(rows, columns=["unique_id", "ds", "horizon"])
    frame["y"] = frame.groupby(KEY)["ds"].transform(lambda _: rng.uniform(0, 100))
    frame["mean"], frame["sd"] = rng.uniform(30, 70, len(frame)), 5.0
    for some in (frame, frame[frame["horizon"] == 1]):
        check(spark.createDataFrame(some), [*KEY, "horizon"], low=0, high=100, partitions=8)
    ones = frame[frame["horizon"] == 1]
    zoned = np.where(ones["unique_id"] == "a", "T00:00:00+01:00", "")
    text = ones.assign(ds=(pd.Timestamp("2024-01-01") + pd.to_timedelta(2 * ones["ds"], unit="D")).dt.date.astype(str))
    for ds in (text["ds"], text["ds"] + "T00:00:00Z"):
        check(spark.createDataFrame(text.assign(ds=ds)), low=0, high=100)
    with pytest.raises(ValueError, match="expected dates with a zone or without in 'ds', got both"):
        recalibrate(spark.createDataFrame(text.assign(ds=text["ds"] + zoned)), partitions=8)


def test_what_is_refused_at_once(spark: Any) -> None:
    df = spark.createDataFrame(panel(Plan(7, "normal", series=2, steps=3)))
    for options, part in (
        ({"model": "M9"}, "M9"),
        ({"outside": "no"}, "outside"),
        ({"partitions": 0}, "partitions"),
        ({"levels": [2.0]}, "levels"),
        ({"low": 5, "high": 1}, "low < high"),
        ({"low": "nothing"}, "nothing"),
        ({"payoff": 3}, "payoff"),
        ({"payoff": oc.QuantileCalibration(context=oc.by("hour", values=range(3)))}, "hour"),
    ):
        with pytest.raises((TypeError, ValueError), match=SENTENCE) as refusal:
            recalibrate(df, **options)
        assert part in str(refusal.value)
    with pytest.raises(ValueError, match=r"expected a column of times, since .* got none: name it by time="):
        recalibrate(df.drop("ds"))
    with pytest.raises(TypeError, match=SENTENCE):
        recalibrate(df.toPandas())
    mixed = df.withColumn("ds", F.current_timestamp()).withColumn("cutoff", F.current_date())
    with pytest.raises(TypeError, match="expected times and cutoffs of one kind"):
        recalibrate(mixed)


def test_what_is_refused_in_a_task_names_series_and_time(spark: Any) -> None:
    frame = panel(Plan(8, "normal", series=3, steps=4))
    at = frame.index[frame["unique_id"] == "s1"][0]
    twice = pd.concat((frame, frame.loc[[at]]))
    with pytest.raises(
        PythonException, match=r"expected one row of series 's1' for each time and cutoff, got two rows"
    ):
        recalibrate(spark.createDataFrame(twice)).collect()
    frame.loc[at, "M0_std"] = -1.0
    where = f"in the row with unique_id 's1', ds {frame.loc[at, 'ds']}"
    with pytest.raises(PythonException, match=rf"got -1 {where}"):
        recalibrate(spark.createDataFrame(frame)).collect()


# --- streams


def streamed(spark: Any, parts: list[pd.DataFrame], folder: Path, schema: Any = None, **options: Any) -> pd.DataFrame:
    """What comes of events that arrive part by part, each a micro-batch of its own."""
    folder.mkdir()
    for i, part in enumerate(parts):
        df = spark.createDataFrame(part, schema)
        schema = df.schema
        df.repartition(1).write.parquet(str(folder / f"in{i}"))
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).option("recursiveFileLookup", "true")
    out = recalibrate_stream(reader.parquet(str(folder)), **options)
    assert out.isStreaming
    name = f"told_{folder.name}"
    writer = out.writeStream.format("memory").queryName(name).option("checkpointLocation", str(folder / "_games"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    assert len([each for each in query.recentProgress if each["numInputRows"]]) == len(parts)
    return spark.table(name).toPandas()


def test_a_stream_gives_what_the_table_gives(spark: Any, tmp_path: Path) -> None:
    """Rows with both, every kind of forecast, in three micro-batches with the rows of each in any order."""
    frame, model = every_kind(9, series=3, steps=6, gaps=0.1, strays=0.1)
    frame["floor"], frame["count"] = -1.0 - frame["ds"], 2**60 + frame["ds"]
    shuffled = frame.sample(frac=1.0, random_state=1)
    parts = [shuffled[shuffled.ds < 2], shuffled[shuffled.ds == 2], shuffled[shuffled.ds > 2]]
    options = {"model": model, "low": "floor", "high": 100, "levels": [0.25]}
    got = streamed(spark, parts, tmp_path / "both", **options)
    want = quietly(frame, **options)
    forecasts = got[got["orcast_event"] == "forecast"].drop(columns=["orcast_event", "orcast_reason"])
    there = frame[[c for c in frame.columns if c.endswith(("M0", "M0_mean", "member_1"))]].notna().any(axis=1)
    same(forecasts, want[there], KEY)
    assert got["count"].dtype == np.int64


def test_events_of_a_stream(spark: Any, tmp_path: Path) -> None:
    """Forecasts and outcomes apart, late, out of order, repeated, unknown and bad; nothing ends the query."""
    nan = float("nan")
    rows = [
        # batch, series, time, id, mean, sd, y
        (0, "a", 1, "a1", 50.0, 5.0, None),
        (0, "a", 2, "a2", 60.0, 5.0, nan),
        (0, "b", 1, "b1", 40.0, 5.0, None),
        (1, "a", 3, "a2", None, None, 58.0),  # out of order
        (1, "a", 4, "a1", None, None, 52.0),  # late
        (1, "a", 1, "a1", 50.0, 5.0, None),  # a repeat
        (1, "a", 5, "a3", 55.0, 5.0, None),
        (1, "b", 2, "b9", None, None, 1.0),  # of no forecast
        (1, None, 2, "x", 1.0, 1.0, None),
        (1, "b", None, "b2", 1.0, 1.0, None),
        (1, "b", 3, None, 1.0, 1.0, None),
        (1, "b", 3, "b3", 1.0, -1.0, None),
        (2, "a", 3, "a2", None, None, 58.0),  # a repeat
        (2, "a", 4, "a1", None, None, 99.0),  # corrected
        (2, "a", 6, "a4", 50.0, 5.0, None),
        (2, "b", 4, "b1", None, None, 900.0),  # outside
    ]
    table = pd.DataFrame(rows, columns=["batch", "unique_id", "ds", "id", "mean", "sd", "y"]).astype({"ds": "Int64"})
    schema = "unique_id string, ds bigint, id string, mean double, sd double, y double"
    parts = [part.drop(columns="batch").astype(object) for _, part in table.groupby("batch")]
    parts = [part.where(part.notna(), None) for part in parts]
    got = streamed(spark, parts, tmp_path / "events", schema, low=0, high=100, outcomes=True)
    told = {(row.unique_id, row.id, row.orcast_event, row.orcast_status): row for row in got.itertuples()}
    assert len(told) == len(rows)
    statuses = got["orcast_status"].value_counts().to_dict()
    assert statuses == {"pending": 5, "refused": 4, "ok": 2, "seen": 2, "unknown": 1, "corrected": 1, "outside": 1}
    reasons = got[got["orcast_status"] == "refused"]["orcast_reason"].tolist()
    assert all(reason.startswith("expected ") for reason in reasons)
    assert {reason.split(",")[0] for reason in reasons} == {
        "expected a series in every event",
        "expected a time in every event",
        "expected an id in every event",
        "expected a standard deviation of at least 0 in 'sd'",
    }
    recal = oc.Recalibrator(oc.Interval(0, 100))
    for id, forecast in (("a1", (50, 5)), ("a2", (60, 5))):
        p = recal.predict(oc.Normal(*forecast), id=id)
        row = told["a", id, "forecast", "pending"]
        assert (row.orcast_mean, row.orcast_sd) == p.to_normal()
    assert told["a", "a1", "forecast", "seen"].orcast_mean == told["a", "a1", "forecast", "pending"].orcast_mean
    for id, y in (("a2", 58.0), ("a1", 52.0)):
        recal.update(y, id=id)
        assert told["a", id, "outcome", "ok"].orcast_miscalibration == recal.guarantee.miscalibration
    for id, forecast in (("a3", (55, 5)), ("a4", (50, 5))):
        p = recal.predict(oc.Normal(*forecast), id=id)
        row = told["a", id, "forecast", "pending"]
        assert (row.orcast_mean, row.orcast_sd) == p.to_normal()


def test_what_a_stream_refuses_at_once(spark: Any, tmp_path: Path) -> None:
    schema = "unique_id string, ds bigint, y double, mean double, sd double"
    stream = spark.readStream.schema(schema).parquet(str(tmp_path))
    for options, part in (
        ({"id": "nothing"}, "id="),
        ({"outside": "raise"}, "outside"),
        ({"max_pending": 0}, "max_pending"),
        ({"remember": 0}, "remember"),
        ({"low": 5, "high": 1}, "low < high"),
        ({"time": "unique"}, "time="),
    ):
        with pytest.raises((TypeError, ValueError), match=SENTENCE) as refusal:
            recalibrate_stream(stream, **options)
        assert part in str(refusal.value)
    with pytest.raises(ValueError, match="which recalibrate_stream takes"):
        recalibrate(stream)
    with pytest.raises(TypeError, match="expected columns of text, numbers, dates or times in a stream, got array"):
        recalibrate_stream(stream.withColumn("more", F.array("y")))
    with pytest.raises(ValueError, match="expected time= with the column that says when each event happened"):
        recalibrate_stream(stream.withColumn("cutoff", F.col("ds")))


# --- the module


def test_the_extra_is_asked_for() -> None:
    code = "import sys; sys.modules['pyspark'] = None\nimport orcast.integrations.spark"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: expected the extra orcast[spark] to be installed, got no pyspark" in done.stderr
    code = "import sys, orcast, orcast.frame.api; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
