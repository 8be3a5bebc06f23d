"""The streams of the contest: unique, honest about time, the same each time, and there without optional packages."""

import pickle
import subprocess
import sys
import time
from importlib.util import find_spec

import numpy as np
import pytest

from orcast.contest import datasets
from orcast.contest.catalogue import YARDSTICK, catalogue, left_out
from orcast.contest.datasets import Series
from orcast.contest.recipe_list import RECIPES
from orcast.contest.stream import KINDS, Stream

PACKAGES = ("river", "sklearn", "sktime", "statsmodels")
QUICK = [recipe for recipe in RECIPES if recipe.quick]


@pytest.fixture(autouse=True)
def no_folders(monkeypatch):
    monkeypatch.delenv("ORCAST_DATA", raising=False)
    monkeypatch.delenv(YARDSTICK, raising=False)


def same(a: Stream, b: Stream) -> bool:
    parts = [(a.y, b.y), (a.issued, b.issued), (a.settled, b.settled)]
    parts += [(a.experts[name], b.experts[name]) for name in a.experts]
    parts += [(a.members, b.members)] if a.members is not None else []
    return a.name == b.name and all(np.array_equal(x, y) for x, y in parts)


def test_names_are_unique():
    names = [recipe.name for recipe in RECIPES]
    assert len(names) == len(set(names))


@pytest.mark.skipif(any(find_spec(name) is None for name in PACKAGES), reason="needs the packages with data")
def test_sixty_streams_of_all_kinds_and_lengths():
    found = catalogue()
    assert len(found) >= 60
    assert {entry.kind for entry in found} == set(KINDS)
    assert sum(entry.rows for entry in found) < 150_000
    notes = left_out()
    assert any("the data folder" in note for note in notes)
    assert any(YARDSTICK in note for note in notes)


@pytest.mark.skipif(any(find_spec(name) is None for name in PACKAGES), reason="needs the packages with data")
def test_series_are_whole():
    for name, shipped in datasets.SHIPPED.items():
        if shipped.path is None:
            continue
        series = datasets.load(name)
        assert np.isfinite(series.values).all(), name
        assert series.values.shape[-1] >= 12, name
        assert ((series.values >= series.low) & (series.values <= series.high)).all(), name
        assert series.x is None or (series.x.shape[0] == series.values.size and np.isfinite(series.x).all()), name


def test_quick_streams_within_seconds_and_the_same_again():
    entries = catalogue(quick=True)
    assert 6 <= len(entries) <= 10
    assert {entry.kind for entry in entries} == set(KINDS)
    start = time.process_time()
    streams = [entry.make() for entry in entries]
    assert time.process_time() - start < 5.0
    for entry, stream in zip(entries, streams, strict=True):
        assert (stream.name, stream.kind) == (entry.name, entry.kind)
        assert entry.rows / 2 <= stream.rows <= entry.rows
        assert same(stream, pickle.loads(pickle.dumps(entry)).make())
        for rows in stream.experts.values():
            assert np.isfinite(rows).all()
            assert (rows >= stream.low).all()
            assert (rows <= stream.high).all()
            assert stream.binary or (np.diff(rows, axis=1) >= 0.0).all()
        if stream.members is not None:
            assert stream.members.shape[0] == stream.rows
        if stream.kind == "adversarial":
            assert hasattr(stream.nature(), "outcome")


@pytest.mark.parametrize("recipe", QUICK, ids=[recipe.name for recipe in QUICK])
def test_forecasts_do_not_know_what_was_settled_later(recipe):
    series = recipe.load()
    stream = recipe.build(series)
    plan, kept = recipe.rows_of(np.atleast_2d(series.values).shape[1])
    rng = np.random.default_rng(0)
    for place in (0, kept.size // 4, kept.size // 2):
        seen, issued = plan.seen[kept[place]], plan.issued[kept[place]]
        values = series.values.copy()
        values[..., seen:] = rng.uniform(10.0, 60.0, values[..., seen:].shape)
        altered = recipe.build(Series(series.name, values, "altered", series.period, series.low, series.high, series.x))
        early = stream.issued <= issued
        assert early.any()
        for name, rows in stream.experts.items():
            np.testing.assert_array_equal(altered.experts[name][early], rows[early])
        later = stream.issued >= stream.settled.min()
        if place < kept.size // 4:  # the test would see it: later rows do change
            assert any((altered.experts[name][later] != rows[later]).any() for name, rows in stream.experts.items())


@pytest.mark.parametrize("recipe", QUICK, ids=[recipe.name for recipe in QUICK])
def test_the_timeline_shows_no_outcome_early(recipe):
    stream = recipe.make()
    issued, known = set(), set()
    for row, is_issue in stream.timeline():
        if is_issue:
            assert known == set(np.flatnonzero(stream.settled <= stream.issued[row]).tolist())
            issued.add(row)
        else:
            assert row in issued
            known.add(row)
    assert issued == known == set(range(stream.rows))


def test_outcomes_in_late_batches():
    recipe = next(recipe for recipe in RECIPES if recipe.name == "humidity, regression, outcomes daily")
    stream = recipe.make()
    assert set(np.unique(stream.settled - stream.issued)) == set(range(1, 25))
    assert np.unique(stream.settled).size * 24 == stream.rows


def test_day_ahead_is_issued_at_ten():
    stream = next(recipe for recipe in RECIPES if recipe.kind == "day-ahead" and recipe.quick).make()
    games = stream.games()
    assert len(games) == 24
    assert {rows.size for rows in games} == {12}
    assert set(stream.issued % 24) == {9}
    assert set(stream.settled - stream.issued) == set(range(15, 39))


ALONE = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in %r:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Without())
from orcast.contest.catalogue import catalogue, left_out
entries = catalogue()
assert len(entries) > 20, len(entries)
streams = [entry.make() for entry in catalogue(quick=True)]
assert len(streams) > 5
notes = left_out()
for name in ("river", "sklearn", "sktime", "statsmodels"):
    assert any(name in note for note in notes), (name, notes)
print(len(entries))
"""


def test_without_optional_packages():
    gone = ("river", "sklearn", "sktime", "statsmodels", "statsforecast", "matplotlib", "pandas", "gluonts")
    done = subprocess.run([sys.executable, "-c", ALONE % (gone,)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


# --- forecasts made elsewhere


def test_stored_streams(tmp_path, monkeypatch):
    (tmp_path / "streams").mkdir()
    (tmp_path / "short").mkdir()
    q = np.sort(np.random.default_rng(0).normal(size=(5, 99)), axis=1)
    when = np.arange(5)
    np.savez(tmp_path / "streams" / "a.npz", q=q, y=q[:, 50], lo=-9.0, hi=9.0, note="toy", issue=when, reveal=when + 2)
    np.savez(tmp_path / "streams" / "b.npz", p=q[:, 0] ** 2 % 1, y=when % 2, note="toy", issue=when, reveal=when + 1)
    # two places, one and two weeks ahead, three weeks each
    day = np.concatenate([7 * np.arange(3, 6)] * 4)
    np.savez(
        tmp_path / "short" / "c.npz", levels=np.array([0.1, 0.9]), y=np.arange(12.0), q=np.arange(24.0).reshape(12, 2),
        day=day, start=np.arange(0, 13, 3), h=np.array([1, 1, 2, 2]), geo=np.array(["ak", "al", "ak", "al"]),
    )  # fmt: skip
    monkeypatch.setenv(YARDSTICK, str(tmp_path))
    a, b, c = [entry.make() for entry in catalogue() if entry.name.endswith((", a", ", b", ", c"))]
    assert a.levels.size == 99
    assert (a.settled - a.issued == 2).all()
    assert (a.low, a.high) == (-9.0, 9.0)
    assert b.binary
    assert b.kind == "binary"
    assert (c.settled - c.issued == 7 * c.horizon).all()
    assert len(c.games()) == 4
    first = c.games()[0]
    assert c.y[first].tolist() == [0.0, 1.0, 2.0]
    assert c.expert[first, 0].tolist() == [0.0, 2.0, 4.0]


def test_the_folder_of_data_is_used(tmp_path):
    lines = ["sunspot_number", *(f"{50 + 40 * np.sin(t / 20):.3f}" for t in range(700))]
    (tmp_path / "sunspot_silso_v2_monthly.csv").write_text("\n".join(lines))
    names = {entry.name: entry for entry in catalogue(tmp_path)}
    assert "wind, regression" not in names
    assert names["sunspots, regression"].make().rows == 300
