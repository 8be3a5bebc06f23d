"""Pending rounds: what is kept, what they reserve, and how they are saved, copied and put back."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import orcast as oc
from helpers import SENTENCE
from orcast.rounds import Rounds

SPACE = oc.Interval(0, 1)


def row(t: int = 0) -> np.ndarray[Any, Any]:
    return np.clip(0.5 + 0.1 * np.sin(t) + 0.1 * SPACE.scores, 0, 1)[None, :]


def result(count: int = 5, **options: Any) -> Rounds:
    """Rounds of a game that has seen some outcomes."""
    rounds = oc.Recalibrator(SPACE, **options).rounds
    for t in range(count):
        rounds.issue(row(t))
        rounds.settle(0.5 + 0.2 * np.cos(t))
    return rounds


def itself(y: float) -> list[float]:
    return [y]


def everything(rounds: Rounds) -> str:
    packed = rounds.to_packed()
    state = [packed.counters.tolist(), packed.records.tolist(), packed.issued.tolist(), packed.features]
    memory = {name: array.tobytes().hex() for name, array in rounds.engine.arrays().items()}
    return repr([rounds.ids, packed.fields, state, memory])


def test_a_peek_that_is_kept_is_a_round_that_was_issued() -> None:
    one, other = result(), result()
    one.issue(row(5), id="a")
    other.keep(other.peek(row(5)), id="a")
    assert everything(one) == everything(other)


def test_reserved_slack_is_the_sum_of_pending_overdrafts() -> None:
    rounds = result()
    for t in range(6):
        rounds.issue(row(t), id=t)
    for t in (3, 0, 5):
        rounds.settle(0.7, id=t)
        assert rounds.reserved == pytest.approx(sum(each.overdraft for each in rounds.pending.values()))
    for t in (1, 2, 4):
        rounds.drop(t)
    assert rounds.reserved == 0.0
    assert rounds.ids == ()
    assert rounds.issued == 11


def test_lost_rounds_are_not_outstanding() -> None:
    rounds = result()
    for t in range(20):
        rounds.issue(row(t), id=t)
    assert rounds.usual_lag == 0.0
    assert rounds.outstanding == 2.0


def test_a_round_is_result_as_if_the_one_that_leaves_were_gone() -> None:
    full, other = result(max_pending=2), result(max_pending=3)
    for rounds in (full, other):
        rounds.issue(row(1), id="a")
        rounds.issue(row(2), id="b")
    other.drop("a")
    with pytest.warns(RuntimeWarning, match="dropped the oldest pending round, 'a'"):
        full.issue(row(3), id="c")
    other.issue(row(3), id="c")
    assert full.ids == other.ids == ("b", "c")
    assert everything(full) == everything(other)


def test_a_refused_round_drops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = result(max_pending=1)
    rounds.issue(row(1), id="a")
    before = everything(rounds)

    def refuse(*args: Any, **options: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(rounds.engine, "predict", refuse)
    with pytest.raises(ValueError, match="no"):
        rounds.issue(row(2), id="b")
    assert everything(rounds) == before


def test_a_branch_is_put_back() -> None:
    rounds = result()
    rounds.issue(row(1), id="a")
    before = everything(rounds)
    with rounds.branch():
        rounds.settle(0.9, id="a")
        rounds.issue(row(2), id="b")
        assert everything(rounds) != before
    assert everything(rounds) == before
    with pytest.raises(ValueError, match="expected the id of a pending round"), rounds.branch():
        rounds.settle(0.9, id=rounds.drop("a").issued)
    assert everything(rounds) == before


@pytest.mark.parametrize("through", [copy.deepcopy, lambda recal: pickle.loads(pickle.dumps(recal))])
def test_a_copy_has_ids_and_features_as_they_were(through: Any) -> None:
    """To the nanosecond, and of the same type: plain data is for files."""
    context = oc.by("limit", edges=[0.5])
    recal = oc.Recalibrator(SPACE, oc.QuantileCalibration(context=context) + oc.Recipe(itself, bound=1))
    id = pd.Timestamp("2026-01-01 00:00:00.123456789")
    recal.predict(oc.Normal(0.5, 0.1), x={"limit": np.float32(0.1)}, id=id)
    twin = through(recal)
    assert twin.pending == (id,)
    assert type(twin.rounds.find(id).record.features["limit"]) is np.float32
    for each in (recal, twin):
        each.update(0.6, id=id)
    assert everything(recal.rounds) == everything(twin.rounds)


@pytest.mark.parametrize("wrong", [(-1.0, 0.0, 0.0), (5.0, 0.0, math.nan), (5.0, -0.5, 0.0)])
def test_counters_that_cannot_be_are_refused(wrong: tuple[float, ...]) -> None:
    rounds = result()
    before = everything(rounds)
    with pytest.raises(ValueError, match="expected counters from 0"):
        rounds.from_packed(rounds.to_packed()._replace(counters=np.array(wrong)), rounds.ids)
    assert everything(rounds) == before


def test_ids_that_are_not_known_or_not_new() -> None:
    book: Any = Rounds(None, max_pending=2)  # type: ignore[arg-type]
    book.pending.update(a=1, b=2)
    for id, match in {
        "c": "expected the id of a pending round, got 'c'",
        None: "expected an unnamed pending round, got none: 2 named ones are pending, pass id=",
    }.items():
        with pytest.raises(ValueError, match=match):
            book.find(id)
    with pytest.raises(TypeError, match="expected a hashable id"):
        book.find([1])
    with pytest.raises(ValueError, match="expected a new id, got 'a', which is pending already"):
        book.check_new("a")
    with pytest.raises(TypeError, match=SENTENCE):
        book.check_new(object())
    assert book.evicted_by(None) == book.evicted_by("c") == ["a"]
    book.pending[None] = 3
    assert book.evicted_by(None) == [None]


def test_a_round_is_settled_beside_what_the_others_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = result(12)
    for t in range(4):
        rounds.issue(row(t), id=t)
    update, told = rounds.engine.update, []

    def observe(record: Any, y: float, *, reserved: float, late: float) -> None:
        told.append(reserved)
        update(record, y, reserved=reserved, late=late)

    monkeypatch.setattr(rounds.engine, "update", observe)
    assert min(each.overdraft for each in rounds.pending.values()) > 0.01
    for t in (2, 0, 3, 1):
        others = sum(each.overdraft for id, each in rounds.pending.items() if id != t)
        rounds.settle(0.7, id=t)
        assert told[-1] == pytest.approx(others, abs=1e-12)
        assert rounds.reserved == pytest.approx(others, abs=1e-12)


def test_the_usual_lag_is_a_running_mean_of_the_rounds_issued_meanwhile() -> None:
    rounds = oc.Recalibrator(SPACE).rounds
    issued: list[str] = []
    usual = None
    for what in ("a", "b", "c", "-b", "d", "-a", "e", "-e", "-c"):
        if not what.startswith("-"):
            rounds.issue(row(), id=what)
            issued.append(what)
            continue
        rounds.settle(0.4, id=what[1:])
        lag = len(issued) - 1 - issued.index(what[1:])
        usual = lag if usual is None else 0.95 * usual + 0.05 * lag
        assert rounds.usual_lag == pytest.approx(usual)
    with rounds.branch():
        rounds.issue(row(), id="f")
        rounds.settle(0.4, id="d")
        assert rounds.usual_lag != usual
    assert rounds.usual_lag == pytest.approx(usual)


@pytest.mark.parametrize("count", [0, 5])
def test_packed_rounds_are_the_same_rounds_in_the_same_order(count: int) -> None:
    """Before any outcome nothing is known of a lag; a lag of zero is one that is known."""
    rounds, packed = result(count), result(count)
    for t in (2, 0, 1):
        rounds.issue(row(t), id=t)
    assert rounds.usual_lag == (0.0 if count else None)
    packed.from_packed(rounds.to_packed(), rounds.ids)
    assert packed.ids == (2, 0, 1)
    assert everything(packed) == everything(rounds)
