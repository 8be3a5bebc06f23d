"""Streams of the comparison: unique, reproducible, honest about time, and there without optional packages."""

import pickle
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from research.comparison.catalogue import STORED, catalogue, left_out
from research.comparison.recipe_list import RECIPES
from research.comparison.recipes import Recipe
from research.comparison.series import Series
from research.comparison.stream import KINDS

PACKAGES = ("river", "sklearn", "sktime", "statsmodels")
QUICK = [recipe for recipe in RECIPES if recipe.quick]
all_packages = pytest.mark.skipif(any(find_spec(n) is None for n in PACKAGES), reason="needs the packages with data")


@pytest.fixture(autouse=True)
def no_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORCAST_DATA", raising=False)
    monkeypatch.delenv(STORED, raising=False)


@all_packages
def test_catalogue_has_all_kinds() -> None:
    found = catalogue()
    assert len({recipe.name for recipe in RECIPES}) == len(RECIPES)
    assert len(found) >= 60
    assert {entry.kind for entry in found} == set(KINDS)
    assert any("the data folder" in note for note in left_out())


def test_quick_streams_are_reproducible() -> None:
    entries = catalogue(quick=True)
    assert {entry.kind for entry in entries} == set(KINDS)
    for entry in entries:
        stream, again = entry.make(), pickle.loads(pickle.dumps(entry)).make()
        assert (stream.name, stream.kind) == (entry.name, entry.kind)
        assert entry.rows / 2 <= stream.rows <= entry.rows
        for name, rows in stream.experts.items():
            np.testing.assert_array_equal(rows, again.experts[name])
            assert ((rows >= stream.low) & (rows <= stream.high)).all()
            assert stream.binary or (np.diff(rows, axis=1) >= 0.0).all()
        np.testing.assert_array_equal(stream.y, again.y)
        assert (stream.adversary is not None) == (stream.kind == "adversarial")


@pytest.mark.parametrize("recipe", QUICK, ids=[recipe.name for recipe in QUICK])
def test_forecasts_do_not_depend_on_later_outcomes(recipe: Recipe) -> None:
    given = recipe.load()
    stream = recipe.build(given)
    plan, kept = recipe.rows_of(np.atleast_2d(given.values).shape[1])
    rng = np.random.default_rng(0)
    for place in (0, kept.size // 2):
        seen, issued = plan.seen[kept[place]], plan.issued[kept[place]]
        values = given.values.copy()
        values[..., seen:] = rng.uniform(10.0, 60.0, values[..., seen:].shape)
        altered = recipe.build(Series(given.name, values, given.period, given.low, given.high, given.x))
        early, later = stream.issued <= issued, stream.issued >= stream.known.min()
        assert early.any()
        for name, rows in stream.experts.items():
            np.testing.assert_array_equal(altered.experts[name][early], rows[early])
        if place == 0:  # the test can fail: later rows do change
            assert any((altered.experts[name][later] != rows[later]).any() for name, rows in stream.experts.items())


def test_outcomes_in_late_batches_and_day_ahead() -> None:
    stream = next(recipe for recipe in RECIPES if recipe.name == "humidity, regression, outcomes daily").make()
    assert set(np.unique(stream.known - stream.issued)) == set(range(1, 25))
    assert np.unique(stream.known).size * 24 == stream.rows
    stream = next(recipe for recipe in QUICK if recipe.kind == "day-ahead").make()
    assert [rows.size for rows in stream.groups()] == [12] * 24
    assert set(stream.issued % 24) == {9}
    assert set(stream.known - stream.issued) == set(range(15, 39))


def test_stored_streams(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "streams").mkdir()
    (tmp_path / "short").mkdir()
    with pytest.raises(FileNotFoundError, match="expected streams"):
        catalogue(stored=tmp_path)
    q, t = np.sort(np.random.default_rng(0).normal(size=(5, 99)), axis=1), np.arange(5)
    np.savez(tmp_path / "streams" / "a.npz", q=q, y=q[:, 50], lo=-9.0, hi=9.0, note="toy", issue=t, reveal=t + 2)
    np.savez(tmp_path / "streams" / "b.npz", p=q[:, 0] ** 2 % 1, y=t % 2, note="toy", issue=t, reveal=t + 1)
    # two places, one and two weeks ahead, three weeks each
    np.savez(
        tmp_path / "short" / "c.npz", levels=np.array([0.1, 0.9]), y=np.arange(12.0), q=np.arange(24.0).reshape(12, 2),
        day=np.tile(7 * np.arange(3, 6), 4), start=np.arange(0, 13, 3), h=np.array([1, 1, 2, 2]),
        geo=np.array(["ak", "al", "ak", "al"]),
    )  # fmt: skip
    monkeypatch.setenv(STORED, str(tmp_path))
    a, b, c = [entry.make() for entry in catalogue() if entry.name.endswith((", a", ", b", ", c"))]
    assert (a.levels.size, a.low, a.high) == (99, -9.0, 9.0)
    assert (a.known - a.issued == 2).all()
    assert b.kind == "binary"
    assert (c.known - c.issued == 7 * c.horizon).all()
    first, *rest = c.groups()
    assert len(rest) == 3
    assert c.y[first].tolist() == [0.0, 1.0, 2.0]
    assert c.base[first, 0].tolist() == [0.0, 2.0, 4.0]
