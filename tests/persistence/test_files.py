"""State files: a stream goes on bit for bit, anything else is refused in a sentence, and a crash leaves no part."""

import copy
import datetime as dt
import os
import pickle
import stat
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orcast as oc
from helpers import SENTENCE, numbers_of, shown
from orcast import persistence
from orcast.serialise import features_to_json

SPACE = oc.Interval(-1, 3, cells=32, tail_cells=4)
Game = oc.Forecaster | oc.Recalibrator


def expert(t: int) -> oc.Normal:
    return oc.Normal(1 + np.sin(t / 5), 0.2)


def outcome(t: int) -> float:
    return float(np.clip(np.random.default_rng(t).normal(1 + np.sin(t / 5), 0.5), -1, 3))


def result(recal: Game, first: int, last: int) -> Game:
    for t in range(first, last):
        recal.predict(expert(t))
        recal.update(outcome(t))
    return recal


GAMES: dict[str, Callable[[], Game]] = {
    "default": lambda: oc.Recalibrator(SPACE),
    "equilibrium": lambda: oc.Recalibrator(
        SPACE, oracle=oc.Equilibrium(temperature=3), outside="clip", max_pending=7, memory=30.0
    ),
    "forecaster": lambda: oc.Forecaster(SPACE, oc.QuantileCalibration([0.1, 0.9], weight=2.0)),
    "full": lambda: oc.Recalibrator(
        SPACE, oc.NoRegret(oc.CRPS(), oc.MSE(), weight=0.5) + oc.MomentMatching(3) + oc.QuantileCalibration()
    ),
}


@pytest.mark.parametrize("name", GAMES)
def test_a_loaded_stream_goes_on_bit_for_bit(name: str, tmp_path: Path) -> None:
    recal = result(GAMES[name](), 0, 40)
    for id in ("a", 7, 2.5, -0.0, True):
        recal.predict(expert(40), id=id)
    recal.predict(expert(41))
    recal.drop("a")
    path = tmp_path / "stream.orcast"
    recal.save(path)
    twin = type(recal).load(path)
    assert type(twin) is type(recal)
    assert twin.pending == recal.pending == (7, 2.5, 0.0, True, None)
    assert twin.guarantee == recal.guarantee
    for one in (recal, twin):
        one.update(outcome(41))
        for id in (2.5, 7):
            one.update(outcome(40), id=id)
        result(one, 42, 80)
    recal.save(tmp_path / "a")
    twin.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    p, q = recal.predict(expert(80)), twin.predict(expert(80))
    assert numbers_of(p) == numbers_of(q)
    assert p.certificate == q.certificate


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
    recal = oc.Recalibrator(SPACE)
    recal.predict(expert(0), id=id)
    recal.save(tmp_path / "state")
    twin = oc.Recalibrator.load(tmp_path / "state")
    assert twin.pending == (id,)
    twin.update(0.5, id=id)
    assert twin.guarantee.rounds == 1


@pytest.mark.parametrize("id", [frozenset(), float("nan"), float("inf"), b"bytes", np.datetime64("NaT", "s")], ids=repr)
def test_ids_that_could_not_be_saved_are_refused(id: Hashable) -> None:
    recal = oc.Recalibrator(SPACE)
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        recal.predict(expert(0), id=id)
    assert recal.pending == ()


# --- what is refused ---


@pytest.fixture
def intact(tmp_path: Path) -> bytes:
    recal = result(oc.Recalibrator(SPACE), 0, 5)
    recal.predict(expert(5), id="late")
    recal.save(tmp_path / "intact")
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


def test_one_bit_flipped_anywhere_is_refused(intact: bytes, tmp_path: Path) -> None:
    for at in [*range(60), *range(60, len(intact), 61)]:
        for bit in (0, 3, 7):
            data = bytearray(intact)
            data[at] ^= 1 << bit
            refused(bytes(data), tmp_path)


def test_another_format_is_refused_with_its_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as later:
        later.setattr(persistence, "FORMAT", 2)
        later.setattr(persistence, "__version__", "9.1.0")
        oc.Recalibrator(SPACE).save(tmp_path / "state")
    message = r"expected a state file of format 1, got format 2 of orcast '9.1.0': load it with that version: .*state"
    with pytest.raises(ValueError, match=message):
        oc.Recalibrator.load(tmp_path / "state")


@pytest.mark.parametrize(
    "data",
    [
        b"date,wind\n2022,7\n",
        pickle.dumps({"a": 1}),
        b"\x93NUMPY\x01\x00",
        b"\x93orcast\n",
        b"\0" * 100,
        "räu".encode(),
    ],
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
    header, arrays = persistence.decode(path.read_bytes())
    change(header, arrays)
    persistence.write(path, persistence.encode(header, arrays))


@pytest.mark.parametrize(
    "change",
    [
        lambda header, arrays: header.pop("payoff"),
        lambda header, arrays: header.update(payoff={"kind": "Luck"}),
        lambda header, arrays: header.update(oracle={"kind": "Committee", "members": 7}),
        lambda header, arrays: header.update(ids=[["late"]]),
        lambda header, arrays: header.update(ids=[]),
        lambda header, arrays: arrays.pop("memory/total"),
        lambda header, arrays: arrays.pop("records"),
        lambda header, arrays: arrays.update(records=np.full_like(arrays["records"], np.inf)),
        lambda header, arrays: arrays.update(records=arrays["records"] + 1000),
        lambda header, arrays: arrays.update(counters=np.array([1.0, 0.0, -1.0])),
        lambda header, arrays: header.update(experts=["a", "b"]),
        lambda header, arrays: arrays.update({"memory/total": np.zeros(3)}),
    ],
)
def test_a_state_that_does_not_fit(change: Callable[[dict, dict], None], tmp_path: Path) -> None:  # type: ignore[type-arg]
    """Another version of the package might write such a thing, with a checksum that is right."""
    recal = oc.Recalibrator(SPACE)
    recal.predict(expert(0), id="late")
    recal.save(tmp_path / "state")
    rewritten(tmp_path / "state", change)
    with pytest.raises(ValueError, match=SENTENCE):
        oc.Recalibrator.load(tmp_path / "state")


# --- saving is all or nothing ---


@pytest.mark.parametrize("step", ["replace", "fsync"])
def test_a_crash_leaves_the_old_file(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recal = result(oc.Recalibrator(SPACE), 0, 3)
    path = tmp_path / "state"
    recal.save(path)
    before = path.read_bytes()

    def crash(*args: object) -> None:
        raise OSError("no space left on device")

    result(recal, 3, 6)
    with monkeypatch.context() as patched:
        patched.setattr(os, step, crash)
        with pytest.raises(OSError, match="no space left"):
            recal.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["state"]
    recal.save(path)
    assert oc.Recalibrator.load(path).guarantee.rounds == 6


@pytest.mark.skipif(os.name != "posix", reason="there are no such permissions here")
def test_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "state"
    recal = oc.Recalibrator(SPACE)
    recal.save(path)
    for mode in (0o640, 0o400):
        path.chmod(mode)
        recal.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == mode


# --- payoffs and spaces with functions ---


def rise(y: float) -> list[float]:
    return [float(np.tanh(y))]


def steep(x: dict[str, float], p: oc.Forecast) -> list[float]:
    return [0.5 * x["hour"] / 24, 0.5]


def worth(action: str, y: float) -> float:
    return y if action == "go" else 0.0


# A payoff with functions, and one that is configured otherwise.
WITH_FUNCTIONS: dict[str, tuple[Callable[[], Any], Any]] = {
    "recipe": (lambda: oc.Recipe(rise, bound=4.0), oc.Recipe(rise, bound=3.0)),
    "recipe of x and p": (
        lambda: oc.QuantileCalibration([0.5]) + oc.Recipe(rise, steep, bound=4.0),
        oc.QuantileCalibration([0.6]) + oc.Recipe(rise, steep, bound=4.0),
    ),
    "swap regret": (
        lambda: oc.payoffs.SwapRegret(["go", "stay"], worth) + oc.MomentMatching(1),
        oc.payoffs.SwapRegret(["go", "stay"], worth, sharpness=7.0) + oc.MomentMatching(1),
    ),
    "context": (
        lambda: oc.QuantileCalibration([0.5], context=oc.by(lambda x: [0.5, x["hour"] / 48], size=2)),
        oc.QuantileCalibration([0.5], context=oc.by(lambda x: [0.5, 0.0, 0.0], size=3)),
    ),
}


@pytest.mark.parametrize("name", WITH_FUNCTIONS)
def test_functions_are_given_again(name: str, tmp_path: Path) -> None:
    make, another = WITH_FUNCTIONS[name]
    recal = oc.Recalibrator(SPACE, make())
    for t in range(6):
        recal.predict(expert(t), x={"hour": t})
        recal.update(outcome(t))
    recal.predict(expert(6), x={"hour": 6}, id="late")
    path = tmp_path / "state"
    recal.save(path)
    twin = oc.Recalibrator.load(path, payoff=make())
    for one in (recal, twin):
        # the waiting round books with the features it had
        one.update(outcome(6), id="late")
        for t in range(7, 10):
            one.predict(expert(t), x={"hour": t})
            one.update(outcome(t))
    recal.save(tmp_path / "a")
    twin.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with pytest.raises(ValueError, match=SENTENCE) as caught:
        oc.Recalibrator.load(path)
    # the sentence says what is missing
    assert "payoff=" in str(caught.value)
    with pytest.raises(ValueError, match=SENTENCE) as caught:
        oc.Recalibrator.load(path, payoff=another)
    assert "the same payoff" in str(caught.value)


FEATURES = [
    {"hour": 14, "wind": 3.5, "name": "north", "on": True, "gone": None},
    {"row": [1, 2.5, "x"], "pair": (1, "a"), "nested": [[1, 2], [3]]},
    {"array": np.array([[1.0, 2.0]]), "number": np.float32(1.5), "whole": np.int64(7), "odd": float("nan")},
    {"day": dt.date(2024, 2, 29), "time": dt.datetime(2024, 2, 29, 7, 30), "hour": np.datetime64("2024-02-29T07")},
    [1.0, 2.0],
    7.5,
    "word",
]


@pytest.mark.parametrize("x", FEATURES, ids=lambda x: str(x)[:30])
def test_the_features_of_waiting_rounds_survive(x: object, tmp_path: Path) -> None:
    seen: list[object] = []

    def witness(y: float, x: object) -> list[float]:
        seen.append(x)
        return [0.1 * y]

    payoff = oc.Recipe(witness, bound=1.0)
    recal = oc.Recalibrator(SPACE, payoff)
    recal.predict(expert(0), x=x, id="late")
    recal.save(tmp_path / "state")
    twin = oc.Recalibrator.load(tmp_path / "state", payoff=payoff)
    before = seen[-1]
    seen.clear()
    twin.update(0.5, id="late")
    assert seen
    assert repr(features_to_json(seen[-1])) == repr(features_to_json(before))


@pytest.mark.parametrize("x", [{1: 2}, {"a": object()}, {"a": {"b": 1}}, object(), {"a": {1, 2}}], ids=shown)
def test_features_that_could_not_be_saved_are_refused(x: object) -> None:
    recal = oc.Recalibrator(SPACE)
    with pytest.raises(TypeError, match=SENTENCE):
        recal.predict(expert(0), x=x)
    assert recal.pending == ()


@pytest.mark.parametrize(
    ("space", "payoff", "expert", "y"),
    [
        (oc.Labels(["a", "b", "c"]), oc.NoRegret(oc.CRPS()), [0.2, 0.3, 0.5], "b"),
        (oc.Labels(["a", "b", "c"]), None, [0.2, 0.3, 0.5], "b"),
        (oc.Circle(24, cells=12), None, oc.Normal(3.0, 2.0), 5.0),
    ],
    ids=["regret", "labels", "circle"],
)
def test_a_round_that_waits_while_others_are_smoothed_continues(
    space: Any, payoff: Any, expert: Any, y: Any, tmp_path: Path
) -> None:
    """What its payoff took from the past belongs to the round, not to the state at the time of saving."""
    recal = oc.Forecaster(space, payoff, oracle=oc.Committee())
    rng = np.random.default_rng(0)
    for t in range(6):
        recal.predict(expert if isinstance(expert, oc.Normal) else rng.dirichlet(np.ones(3)), id=t)
    for t in range(5):
        recal.update(y, id=t)
    recal.save(tmp_path / "state")
    twins = [recal, oc.Forecaster.load(tmp_path / "state"), copy.deepcopy(recal)]
    for twin in twins:
        twin.update(y, id=5)
    masses = [twin.predict(expert).mass.tolist() for twin in twins]
    assert masses[0] == masses[1] == masses[2]
    assert twins[0].guarantee == twins[1].guarantee == twins[2].guarantee


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero here")
def test_a_device_or_a_folder_is_no_state_file(tmp_path: Path) -> None:
    for place in ("/dev/zero", str(tmp_path)):
        with pytest.raises(ValueError, match="expected an orcast state file, got something else"):
            persistence.read(place)
        with pytest.raises(ValueError, match="expected the path of a state file, got something else"):
            persistence.write(place, b"")
