"""A folder of one's own files as streams."""

import numpy as np
import polars as pl
import pytest

from orcast.contest.catalogue import catalogue, own_streams
from orcast.contest.files import read_stream

RNG = np.random.default_rng(0)


def by_name(folder):
    return {
        entry.name: entry for entry in catalogue(folder=folder, quick=True) if entry.name.endswith(("csv", "parquet"))
    }


def test_quantiles_with_cutoffs(tmp_path):
    days = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 1, 10), eager=True)
    rows = [
        {"unique_id": place, "cutoff": day, "ds": day, "step": step}
        for day in days
        for place in "ab"
        for step in (1, 2, 3)
    ]
    frame = pl.DataFrame(rows).with_columns(ds=pl.col("ds") + pl.duration(days=pl.col("step"))).drop("step")
    frame = frame.with_columns(y=pl.Series(RNG.normal(size=60)))
    for level in (0.1, 0.5, 0.9):
        frame = frame.with_columns(pl.lit(level * 4 - 2).alias(f"q{level}"))
    # the file's own order says nothing
    frame.sample(fraction=1.0, shuffle=True, seed=1).write_parquet(tmp_path / "panel.parquet")
    entry = by_name(tmp_path)["panel.parquet"]
    stream = entry.make()
    assert (entry.kind, entry.rows, stream.rows) == ("weekly-late", 60, 60)
    assert stream.levels.tolist() == [0.1, 0.5, 0.9]
    assert len(stream.games()) == 6
    assert set(stream.horizon.tolist()) == {1, 2, 3}
    # an outcome of day D is known to what is issued on day D, and not before
    shown = set()
    at = {}
    for row, issue in stream.timeline():
        if issue:
            at[row] = len(shown)
        else:
            shown.add(row)
    first = {}
    for row, count in at.items():
        first.setdefault(int(stream.issued[row]), count)
    assert list(first.values())[:5] == [0, 2, 6, 12, 18]


def test_columns_that_say_when_outcomes_were_known(tmp_path):
    frame = pl.DataFrame({
        "time": [1, 2, 3, 4], "known": [3, 4, 5, 6], "y": [0.5, 1.5, 2.5, 3.5],
        "q0.25": [0.0, 1.0, 2.0, 3.0], "q0.75": [1.0, 2.0, 3.0, 4.0],
    })  # fmt: skip
    frame.write_csv(tmp_path / "late.csv")
    stream = read_stream(str(tmp_path / "late.csv"))
    seen = [(stream.settled <= issued).sum() for issued in stream.issued]
    assert seen == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ({"p": RNG.uniform(size=30), "y": RNG.integers(0, 2, 30)}, "binary"),
        ({f"member_{k}": RNG.normal(size=30) for k in range(8)} | {"y": RNG.normal(size=30)}, "ensembles"),
        ({"mean": RNG.normal(size=30), "sd": np.ones(30), "y": RNG.normal(size=30)}, "one-step"),
        ({"a_q0.1": -np.ones(30), "a_q0.9": np.ones(30), "b_q0.1": -np.ones(30), "b_q0.9": np.ones(30),
          "y": RNG.normal(size=30)}, "several experts"),
    ],
)  # fmt: skip
def test_kinds(tmp_path, columns, kind):
    pl.DataFrame(columns).write_csv(tmp_path / "mine.csv")
    entry = by_name(tmp_path)["mine.csv"]
    stream = entry.make()
    assert entry.kind == stream.kind == kind
    assert stream.rows == 30
    assert np.isfinite(stream.expert).all()
    assert (stream.settled[:-1] <= stream.issued[1:]).all()
    assert (stream.members is not None) == (kind == "ensembles")
    assert len(stream.experts) == (2 if kind == "several experts" else 1)


def test_a_point_has_the_spread_of_errors_known_by_then(tmp_path):
    y = RNG.normal(size=40)
    frame = pl.DataFrame({"unique_id": ["a"] * 40, "ds": range(40), "y": y, "tree": np.zeros(40)})
    frame.write_csv(tmp_path / "point.csv")
    stream = read_stream(str(tmp_path / "point.csv"))
    assert stream.rows == 39  # before the first outcome there is no spread
    changed = frame.with_columns(y=pl.Series([*y[:20], *(9.0 + y[20:])]))
    changed.write_csv(tmp_path / "point.csv")
    np.testing.assert_array_equal(read_stream(str(tmp_path / "point.csv")).expert[:20], stream.expert[:20])


def test_rows_without_outcome_are_left_out(tmp_path):
    (tmp_path / "gaps.csv").write_text("y,q0.1,q0.9\n1,0,2\n,0,2\n1,,2\n3,2,4\n")
    stream = read_stream(str(tmp_path / "gaps.csv"))
    assert stream.y.tolist() == [1.0, 3.0]


def test_files_without_forecasts_are_named(tmp_path):
    (tmp_path / "notes.csv").write_text("when,what\n1,rain\n2,sun\n")
    (tmp_path / "labels.csv").write_text("y,p_home,p_away\nhome,0.6,0.4\naway,0.5,0.5\n")
    (tmp_path / "readme.txt").write_text("nothing")
    assert not by_name(tmp_path)
    notes = own_streams(tmp_path)[1]
    assert len(notes) == 2
    assert "notes.csv" in notes[1]
    assert "labels" in notes[0]
    with pytest.raises(FileNotFoundError, match="expected a folder of forecasts"):
        catalogue(folder=tmp_path / "none")


def test_a_probability_that_is_none_is_named_with_its_file(tmp_path):
    (tmp_path / "events.csv").write_text("y,p\n1,0.6\n0,1.3\n")
    found, (note,) = own_streams(tmp_path)
    assert found == []
    assert note.startswith("left out, events.csv: expected probabilities")
    assert "1.3" in note
