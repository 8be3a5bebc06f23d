"""State files: a stream goes on bit for bit, anything else is refused in a sentence, and a crash leaves no part."""

import datetime as dt
import os
import pickle
import stat
from collections.abc import Callable, Hashable
from pathlib import Path

import numpy as np
import pytest

import orcast as oc
from helpers import SENTENCE
from orcast import storage

SPACE = oc.Interval(-1, 3, cells=32, tail_cells=4)
Game = oc.Forecaster | oc.Recalibrator


def expert(t: int) -> oc.Normal:
    return oc.Normal(1 + np.sin(t / 5), 0.2)


def outcome(t: int) -> float:
    return float(np.clip(np.random.default_rng(t).normal(1 + np.sin(t / 5), 0.5), -1, 3))


def played(game: Game, first: int, last: int) -> Game:
    for t in range(first, last):
        game.predict(expert(t))
        game.update(outcome(t))
    return game


GAMES: dict[str, Callable[[], Game]] = {
    "default": lambda: oc.Recalibrator(SPACE),
    "equilibrium": lambda: oc.Recalibrator(SPACE, oracle=oc.Equilibrium(temperature=3), outside="clip", max_pending=7),
    "forecaster": lambda: oc.Forecaster(SPACE, oc.QuantileCalibration([0.1, 0.9], weight=2.0)),
    "full": lambda: oc.Recalibrator(
        SPACE, oc.NoRegret(oc.CRPS(), oc.MSE(), weight=0.5) + oc.MomentMatching(3) + oc.QuantileCalibration()
    ),
}


@pytest.mark.parametrize("name", GAMES)
def test_a_loaded_stream_goes_on_bit_for_bit(name: str, tmp_path: Path) -> None:
    game = played(GAMES[name](), 0, 40)
    for id in ("a", 7, 2.5, -0.0, True):
        game.predict(expert(40), id=id)
    game.predict(expert(41))
    game.drop("a")
    path = tmp_path / "stream.orcast"
    game.save(path)
    twin = type(game).load(path)
    assert type(twin) is type(game)
    assert twin.pending == game.pending == (7, 2.5, 0.0, True, None)
    assert twin.guarantee == game.guarantee
    for one in (game, twin):
        one.update(outcome(41))
        for id in (2.5, 7):
            one.update(outcome(40), id=id)
        played(one, 42, 80)
    game.save(tmp_path / "a")
    twin.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    p, q = game.predict(expert(80)), twin.predict(expert(80))
    assert p.to_plain() == q.to_plain()
    assert p.certificate == q.certificate


def test_options_come_back(tmp_path: Path) -> None:
    game = GAMES["equilibrium"]()
    game.save(tmp_path / "state")
    twin = oc.Recalibrator.load(tmp_path / "state")
    assert twin.space == SPACE
    assert twin.oracle == oc.Equilibrium(temperature=3)
    assert twin.payoff.to_plain() == game.payoff.to_plain()
    assert (twin._game.outside, twin._game.max_pending) == ("clip", 7)


def test_a_path_may_be_text_and_saving_twice_is_the_same(tmp_path: Path) -> None:
    game = played(oc.Recalibrator(SPACE), 0, 5)
    game.save(str(tmp_path / "state"))
    first = (tmp_path / "state").read_bytes()
    game.save(tmp_path / "state")
    assert (tmp_path / "state").read_bytes() == first
    oc.Recalibrator.load(str(tmp_path / "state"))


IDS = [
    np.int64(5),
    np.float64(2.5),
    np.str_("x"),
    ("station", 7),
    (("a", 1), dt.date(2022, 1, 1)),
    dt.datetime(2022, 1, 1, 14, 30),
    dt.datetime(2022, 1, 1, tzinfo=dt.UTC),
    np.datetime64("2022-01-01T14"),
]


@pytest.mark.parametrize("id", IDS, ids=repr)
def test_other_ids_come_back(id: Hashable, tmp_path: Path) -> None:
    game = oc.Recalibrator(SPACE)
    game.predict(expert(0), id=id)
    game.save(tmp_path / "state")
    twin = oc.Recalibrator.load(tmp_path / "state")
    assert twin.pending == (id,)
    twin.update(0.5, id=id)
    assert twin.guarantee.rounds == 1


@pytest.mark.parametrize("id", [frozenset(), float("nan"), float("inf"), b"bytes", np.datetime64("NaT")], ids=repr)
def test_ids_that_could_not_be_saved_are_refused(id: Hashable) -> None:
    game = oc.Recalibrator(SPACE)
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        game.predict(expert(0), id=id)
    assert game.pending == ()


# --- what is refused ---


@pytest.fixture
def intact(tmp_path: Path) -> bytes:
    game = played(oc.Recalibrator(SPACE), 0, 5)
    game.predict(expert(5), id="late")
    game.save(tmp_path / "intact")
    return (tmp_path / "intact").read_bytes()


def refused(data: bytes, tmp_path: Path) -> str:
    path = tmp_path / "broken"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=SENTENCE) as caught:
        oc.Recalibrator.load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_truncated_file(intact: bytes, tmp_path: Path) -> None:
    for length in [*range(200), *range(200, len(intact), 97), len(intact) - 1]:
        assert "truncated" in refused(intact[:length], tmp_path)


def test_a_file_with_more_in_it(intact: bytes, tmp_path: Path) -> None:
    refused(intact + b"\0", tmp_path)


def test_one_bit_flipped_anywhere(intact: bytes, tmp_path: Path) -> None:
    for at in [*range(60), *range(60, len(intact), 61)]:
        for bit in (0, 3, 7):
            data = bytearray(intact)
            data[at] ^= 1 << bit
            refused(bytes(data), tmp_path)


def test_a_newer_file(intact: bytes, tmp_path: Path) -> None:
    start = len(storage.MAGIC)
    newer = intact[:start] + (storage.VERSION + 1).to_bytes(8, "little") + intact[start + 8 :]
    assert "newer" in refused(newer, tmp_path)


@pytest.mark.parametrize(
    "data",
    [b"date,wind\n2022,7\n", pickle.dumps({"a": 1}), b"\x93NUMPY\x01\x00", b"ORCA", b"\0" * 100, "räu".encode()],
    ids=["csv", "pickle", "numpy", "almost", "zeros", "text"],
)
def test_a_foreign_file(data: bytes, tmp_path: Path) -> None:
    refused(data, tmp_path)


def test_a_state_of_another_class(tmp_path: Path) -> None:
    oc.Recalibrator(SPACE).save(tmp_path / "recalibrator")
    oc.Forecaster(SPACE).save(tmp_path / "forecaster")
    with pytest.raises(ValueError, match=SENTENCE) as caught:
        oc.Recalibrator.load(tmp_path / "forecaster")
    assert "Forecaster" in str(caught.value)
    with pytest.raises(ValueError, match=SENTENCE):
        oc.Forecaster.load(tmp_path / "recalibrator")


def rewritten(path: Path, change: Callable[[dict, dict], None]) -> None:  # type: ignore[type-arg]
    header, arrays = storage.read(path)
    change(header, arrays)
    storage.write(path, header, arrays)


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header.pop("payoff"),
        lambda header, arrays: header.update(payoff={"kind": "Luck"}),
        lambda header, arrays: header.update(oracle={"kind": "Delphi"}),
        lambda header, arrays: header.update(space={"kind": "Torus"}),
        lambda header, arrays: header.update(oracle={"kind": "Committee", "members": 7}),
        lambda header, arrays: header.update(payoff=None),
        lambda header, arrays: header.update(waiting=[["late"]]),
        lambda header, arrays: header.update(issued="many"),
        lambda header, arrays: arrays.pop("memory/total"),
        lambda header, arrays: arrays.pop("page/0/cells"),
        lambda header, arrays: arrays.update({"memory/total": np.zeros(3)}),
        lambda header, arrays: arrays.update({"page/0/cells": np.zeros((2, 2))}),
    ],
)
def test_a_state_that_does_not_fit(change: Callable[[dict, dict], None], tmp_path: Path) -> None:  # type: ignore[type-arg]
    """Another version of the package might write such a thing, with a checksum that is right."""
    game = oc.Recalibrator(SPACE)
    game.predict(expert(0), id="late")
    game.save(tmp_path / "state")
    rewritten(tmp_path / "state", change)
    with pytest.raises(ValueError, match=SENTENCE):
        oc.Recalibrator.load(tmp_path / "state")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        oc.Recalibrator.load(tmp_path / "nowhere")


def test_no_pickle_is_involved(intact: bytes) -> None:
    assert b"pickle" not in intact
    assert pickle.PROTO + b"\x04" not in intact[:100]
    assert intact.startswith(storage.MAGIC)


# --- saving is all or nothing ---


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_crash_leaves_the_old_file(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game = played(oc.Recalibrator(SPACE), 0, 3)
    path = tmp_path / "state"
    game.save(path)
    before = path.read_bytes()

    def crash(*args: object) -> None:
        raise OSError("no space left on device")

    played(game, 3, 6)
    with monkeypatch.context() as patched:
        patched.setattr(os, step, crash)
        with pytest.raises(OSError, match="no space left"):
            game.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["state"]
    game.save(path)
    assert oc.Recalibrator.load(path).guarantee.rounds == 6


def test_the_file_is_there_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks while it is written sees the old file, whole."""
    path = tmp_path / "state"
    game = played(oc.Recalibrator(SPACE), 0, 3)
    game.save(path)
    before = path.read_bytes()
    seen = []
    replace = os.replace

    def watched(source: str, target: Path) -> None:
        seen.append((path.read_bytes(), Path(source).read_bytes()))
        replace(source, target)

    monkeypatch.setattr(os, "replace", watched)
    played(game, 3, 4).save(path)
    assert seen == [(before, path.read_bytes())]


def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "state"
    game = oc.Recalibrator(SPACE)
    game.save(path)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    path.chmod(0o640)
    game.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
