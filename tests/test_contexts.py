"""Contexts: groups known before the outcome, each with a promise of its own."""

import datetime
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import orcast as oc
from helpers import SENTENCE, engine_of, record_of
from orcast import ledger
from orcast.contexts import EVERYONE, Context, ContextInputs, as_context, context_from_plain
from orcast.testing import worst_outcome

SPACE = oc.Interval(0, 1, cells=24, tail_cells=3)


def at(context: Context, **features: Any) -> list[float]:
    return context(ContextInputs(features)).tolist()


# --- the vectors ---


def test_values_have_a_group_each() -> None:
    context = oc.by("day", values=["Mo", "Tu", "We"])
    assert context.size == 3
    assert context.labels == ("day=Mo", "day=Tu", "day=We")
    assert at(context, day="Tu") == [0.0, 1.0, 0.0]
    assert at(oc.by("hour", values=range(3)), hour=np.int64(2)) == [0.0, 0.0, 1.0]
    assert at(oc.by("hour", values=np.arange(3)), hour=1) == [0.0, 1.0, 0.0]


def test_values_of_any_plain_kind_come_back_from_a_file(tmp_path: Path) -> None:
    values = [datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1, 12), ("a", 1), math.inf, "x", 2, 0.5]
    recal = oc.Recalibrator(SPACE, oc.QuantileCalibration(context=oc.by("v", values=values)))
    recal.save(tmp_path / "state")
    again = oc.Recalibrator.load(tmp_path / "state")
    (part,) = again.payoff
    assert [at(part.context, v=value) for value in values] == np.eye(len(values)).tolist()
    assert again.payoff.to_plain() == recal.payoff.to_plain()


def test_an_unknown_value_raises_or_has_a_group_of_its_own() -> None:
    strict, open_ = oc.by("hour", values=range(2)), oc.by("hour", values=range(2), other=True)
    for value in (7, "x", None, [1], float("nan")):
        with pytest.raises(ValueError, match=SENTENCE):
            at(strict, hour=value)
        assert at(open_, hour=value) == [0.0, 0.0, 1.0]
    assert open_.labels[-1] == "hour: other"


@pytest.mark.parametrize("features", [None, {}, {"wind": 3}, 7.0, [1, 2]], ids=repr)
@pytest.mark.parametrize("context", [oc.by("hour", values=range(3)), oc.by("hour", edges=[1.0])], ids=repr)
def test_a_missing_feature_is_named(features: object, context: Context) -> None:
    with pytest.raises(ValueError, match=SENTENCE) as caught:
        context(ContextInputs(features))
    assert "'hour'" in str(caught.value)


bins = st.lists(st.floats(-50, 50, allow_subnormal=False), min_size=1, max_size=6, unique=True).map(sorted)


@given(bins, st.floats(-60, 60), st.floats(0, 1))
def test_bins_are_a_partition_of_unity(edges: list[float], value: float, soft: float) -> None:
    narrowest = min(np.diff(edges), default=5.0)
    if narrowest < 1e-6:
        return
    context = oc.by("wind", edges=edges, soft=soft * narrowest)
    c = np.array(at(context, wind=value))
    assert c.size == len(edges) + 1
    assert c.sum() == pytest.approx(1.0)
    assert (c >= 0.0).all()
    assert c @ c <= context.bound + 1e-12
    # neighbours at most, and the bin of the value has the largest share
    assert (c > 0.0).sum() <= 2
    assert c[int(np.searchsorted(edges, value))] >= 0.5 - 1e-9


BAD_VECTORS: dict[str, Callable[[Any], Any]] = {
    "nan": lambda x: [np.nan, 0.0],
    "too long": lambda x: [0.1, 0.1, 0.1],
    "a number": lambda x: 0.5,
    "text": lambda x: ["a", "b"],
    "too large": lambda x: [1.0, 0.1],
    "nested": lambda x: [[0.1, 0.1]],
}


@pytest.mark.parametrize("name", BAD_VECTORS)
def test_a_bad_vector_is_refused_and_changes_nothing(name: str) -> None:
    bad = []
    context = oc.by(lambda x: BAD_VECTORS[name](x) if bad else [0.5, 0.5], size=2)
    forecaster = oc.Forecaster(SPACE, oc.QuantileCalibration([0.5], context=context))
    forecaster.predict(oc.Normal(0.5, 0.1), x={})
    forecaster.update(0.7)
    before = {key: array.copy() for key, array in engine_of(forecaster).arrays().items()}
    bad.append(True)
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        forecaster.predict(oc.Normal(0.5, 0.1), x={}, id="new")
    assert forecaster.pending == ()
    for key, array in engine_of(forecaster).arrays().items():
        assert array.tobytes() == before[key].tobytes()


def test_the_last_error_is_known() -> None:
    context = oc.by_last_error()
    assert context(ContextInputs()).tolist() == [0.0, 0.0]
    assert context(ContextInputs(last_error=0.1)).tolist() == [1.0, 0.0]
    assert context(ContextInputs(last_error=0.0)).tolist() == [0.0, 1.0]


def test_products_and_unions() -> None:
    a, b = oc.by("hour", values=range(2)), oc.by("wind", edges=[5], soft=0)
    product, union = a * b, a | b
    assert product.labels == tuple(f"hour={h}, wind in {w}" for h in (0, 1) for w in ("(-inf, 5]", "(5, inf]"))
    assert at(product, hour=1, wind=3) == [0, 0, 1, 0]
    assert at(union, hour=1, wind=9) == [0, 1, 0, 1]
    assert (product.bound, union.bound) == (1.0, 2.0)
    three = a * b * a | b
    assert three.size == 8 + 2
    assert at(three, hour=0, wind=9) == [0, 0, 1, 0, 0, 0, 0, 0, 0, 1]
    for other in (3, 1.5, None):
        with pytest.raises(TypeError, match="unsupported operand"):
            a * other
        with pytest.raises(TypeError, match="unsupported operand"):
            a | other


PLAIN = {
    "values": oc.by("day", values=["Mo", 2, 3.5, True], other=True),
    "bins": oc.by("wind", edges=[5, 10], soft=0.3),
    "level": oc.by_expert("level", edges=[0.5]),
    "last error": oc.by_last_error(),
    "product": oc.by("a", values=[1, 2]) * oc.by("b", edges=[0]),
    "union": oc.by("a", values=[1, 2]) | oc.by_last_error() * oc.by_expert("spread", edges=[1, 2]),
    "everyone": EVERYONE,
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_data_and_back(name: str) -> None:
    context = PLAIN[name]
    plain = json.loads(json.dumps(context.to_plain()))
    twin = context_from_plain(plain)
    assert twin.to_plain() == context.to_plain()
    assert (twin.labels, twin.bound, twin.signed) == (context.labels, context.bound, context.signed)


@pytest.mark.parametrize(
    "make",
    [
        lambda: oc.by("hour"),
        lambda: oc.by("hour", values=[1], edges=[1]),
        lambda: oc.by(7, values=[1]),
        lambda: oc.by(len),
        lambda: oc.by(len, size=0),
        lambda: oc.by(len, size=2, bound=0.0),
        lambda: oc.by("hour", values=[]),
        lambda: oc.by("hour", values=[1, 1]),
        lambda: oc.by("hour", values=[[1], [2]]),
        lambda: oc.by("wind", edges=[2, 1]),
        lambda: oc.by("wind", edges=[1, float("nan")]),
        lambda: oc.by("wind", edges=[1, 2], soft=3.0),
        lambda: oc.by_expert("mood", edges=[1]),
        lambda: oc.by("a", values=range(200)) * oc.by("b", values=range(200)),
        lambda: as_context("hour"),
        lambda: oc.QuantileCalibration(context=lambda x: [1]),
        lambda: oc.NoRegret(oc.CRPS(), context=oc.by(len, size=2)),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(make: Callable[[], object]) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        make()


# --- in a game ---


def test_the_experts_level_and_spread_are_what_it_said() -> None:
    payoff = oc.QuantileCalibration([0.5], context=oc.by_expert("level", edges=[0.5], soft=0))
    payoff += oc.QuantileCalibration([0.5], context=oc.by_expert("spread", edges=[0.2], soft=0))
    forecaster = oc.Recalibrator(SPACE, payoff)
    for mean, sd, groups in ((0.4, 0.05, [1, 0, 1, 0]), (0.6, 0.05, [0, 1, 1, 0]), (0.6, 0.1, [0, 1, 0, 1])):
        forecaster.predict(oc.Normal(mean, sd))
        # from 10% to 90% is 2.56 sd
        assert record_of(forecaster).view("context").tolist() == groups
        forecaster.update(0.5)
    with pytest.raises(ValueError, match=SENTENCE):
        oc.Forecaster(SPACE, payoff).predict()


def test_on_binary_the_level_is_the_probability() -> None:
    context = oc.by_expert("level", edges=[0.5], soft=0)
    forecaster = oc.Recalibrator(oc.Binary(), oc.BinaryCalibration(grid=5, context=context))
    for q, y in ((0.2, 0), (0.9, 1), (0.95, 1)):
        forecaster.predict(q)
        forecaster.update(y)
    groups = forecaster.guarantee.groups["binary by level"]
    assert [group.rounds for group in groups.values()] == [1.0, 2.0]


@pytest.mark.parametrize("space", [SPACE, oc.Binary()], ids=str)
def test_the_last_error_is_that_of_what_was_result(space: Any) -> None:
    own = oc.QuantileCalibration([0.5], context=oc.by_last_error())
    if isinstance(space, oc.Binary):
        own = oc.BinaryCalibration(grid=5, context=oc.by_last_error())
    forecaster = oc.Recalibrator(space, own)
    expected = [0.0, 0.0]
    for t in range(12):
        p = forecaster.predict(0.5 if isinstance(space, oc.Binary) else oc.Normal(0.5, 0.1))
        y = [0, 1, 1][t % 3] if isinstance(space, oc.Binary) else [0.1, 0.9, 0.9][t % 3]
        centre = p.mean() if isinstance(space, oc.Binary) else p.median()
        forecaster.update(y)
        if t < 11:
            expected[0 if y > centre else 1] += 1
    (groups,) = forecaster.guarantee.groups.values()
    # the first round belongs to neither
    assert [group.rounds for group in groups.values()] == expected


def test_groups_are_told_by_name() -> None:
    payoff = oc.QuantileCalibration([0.5], context=oc.by("hour", values=range(3))) + oc.MomentMatching(1)
    payoff += oc.QuantileCalibration([0.1], context=oc.by("hour", values=range(3)))
    forecaster = oc.Recalibrator(SPACE, payoff)
    for t in range(30):
        forecaster.predict(oc.Normal(0.5, 0.1), x={"hour": t % 2})
        forecaster.update(0.9 if t % 2 else 0.4)
    g = forecaster.guarantee
    assert set(g.parts) == {"quantile by hour", "moment", "quantile by hour (2)"}
    assert set(g.groups) == {"quantile by hour", "quantile by hour (2)"}
    groups = g.groups["quantile by hour"]
    assert list(groups) == ["hour=0", "hour=1", "hour=2"]
    assert [group.rounds for group in groups.values()] == [15.0, 15.0, 0.0]
    assert groups["hour=2"].miscalibration == 0.0
    assert all(group.miscalibration <= group.promised for group in groups.values())


# --- each group keeps its own promise ---


def group_excess(forecaster: Any) -> float:
    return float(engine_of(forecaster).ledger.groups[:, ledger.GroupAccount.EXCESS].max())


DISJOINT: dict[str, Callable[[], Any]] = {
    "quantile": lambda: oc.QuantileCalibration(context=oc.by("hour", values=range(3))),
    "interval": lambda: oc.IntervalCalibration([0.5, 0.9], context=oc.by("hour", values=range(3))),
    "moment": lambda: oc.MomentMatching(2, context=oc.by("hour", values=range(3))),
    "product": lambda: oc.QuantileCalibration(
        [0.1, 0.5, 0.9], context=oc.by("hour", values=range(3)) * oc.by_expert("level", edges=[0.5], soft=0)
    ),
    "both": lambda: (
        oc.QuantileCalibration(context=oc.by("hour", values=range(3)))
        + oc.MomentMatching(2, context=oc.by("hour", values=range(3)))
    ),
}
# With two parts in a group, only their sum is promised.
SINGLE = {name for name in DISJOINT if name != "both"}


@pytest.mark.parametrize("name", DISJOINT)
@pytest.mark.parametrize("oracle", [oc.Committee(), oc.Equilibrium()], ids=str)
def test_each_disjoint_group_keeps_its_own_promise(name: str, oracle: Any) -> None:
    """Against Nature who looks at the whole; one group is rare."""
    forecaster = oc.Recalibrator(SPACE, DISJOINT[name](), oracle=oracle)
    rng = np.random.default_rng(0)
    for t in range(250):
        hour = 2 if t % 25 == 24 else t % 2
        forecaster.predict(oc.Normal(rng.uniform(0.2, 0.8), 0.1), x={"hour": hour})
        forecaster.update(worst_outcome(forecaster)[0])
        for groups in forecaster.guarantee.groups.values():
            for group in groups.values():
                assert group.miscalibration <= (group.promised + group.excess) * (1 + 1e-9)
                assert group.excess == 0.0 or name not in SINGLE
    assert forecaster.guarantee.held == 1.0
    if name in SINGLE:
        assert group_excess(forecaster) == 0.0
    book = engine_of(forecaster).ledger
    budgets = book.groups[:, ledger.GroupAccount.BUDGET] - book.groups[:, ledger.GroupAccount.EXCESS]
    bounds = np.repeat(book.layout.bound_list, len(book.groups) // book.layout.count)
    # the bound of a group is B times its own rounds, and the credit
    assert budgets == pytest.approx(bounds * (book.groups[:, ledger.GroupAccount.COUNT] + ledger.CREDIT))


@pytest.mark.parametrize("overlap", [0.0, 0.5, 1.0])
def test_overlapping_groups_keep_the_sum(overlap: float) -> None:
    """All rounds, and some of them again: the whole is promised, and the groups say what they went beyond."""
    context = oc.by("hour", values=range(2)) | oc.by("wind", edges=[0.5], soft=0.2)
    forecaster = oc.Recalibrator(SPACE, oc.QuantileCalibration([0.1, 0.5, 0.9], context=context))
    rng = np.random.default_rng(1)
    for t in range(200):
        wind = overlap * (t % 2) + (1 - overlap) * rng.random()
        forecaster.predict(oc.Normal(0.5, 0.1), x={"hour": t % 2, "wind": wind})
        forecaster.update(worst_outcome(forecaster)[0])
        g = forecaster.guarantee
        assert g.miscalibration <= g.promised
        for group in g.groups["quantile by hour or wind"].values():
            assert group.miscalibration <= (group.promised + group.excess) * (1 + 1e-9)
    assert g.held == 1.0
    assert g.excess == 0.0


def test_a_function_with_signs_keeps_its_promise() -> None:
    """A linear context: errors are uncorrelated with a feature."""
    context = oc.by(lambda x: [0.8, 0.6 * x["tilt"]], size=2)
    forecaster = oc.Recalibrator(SPACE, oc.MomentMatching(1, context=context))
    rng = np.random.default_rng(1)
    for _ in range(200):
        forecaster.predict(oc.Normal(0.5, 0.1), x={"tilt": rng.uniform(-1, 1)})
        forecaster.update(worst_outcome(forecaster)[0])
        assert forecaster.guarantee.miscalibration <= forecaster.guarantee.promised
    assert forecaster.guarantee.held == 1.0
