"""Experts that join, sleep and leave: the promise goes on, and so does what was learnt."""

import copy
import pickle
from pathlib import Path
from time import process_time
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import ndtri

import orcast as oc
from helpers import SENTENCE, check_kept, engine_of
from orcast.engine.kernels import rounds as round_kernels
from orcast.engine.kernels.records import ExpertLoss
from orcast.engine.membership import mean_weight
from orcast.ledger import Account
from orcast.testing import worst_outcome

SPACE = oc.Interval(0, 1, cells=24, tail_cells=3)
LABELS = oc.Labels(["a", "b", "c"])
NAMES = ("tree", "net", "arima", "transformer")
GROUPS = oc.by("day", values="MT")

# An engine of each kind: compiled, with witnesses, binary, dense on cells of each kind.
GAMES: dict[str, Any] = {
    "ordered": lambda: oc.Recalibrator(SPACE),
    "line": lambda: oc.Recalibrator(oc.Line(cells=24, tail_cells=3)),
    "groups": lambda: oc.Recalibrator(
        SPACE,
        oc.QuantileCalibration([0.1, 0.5, 0.9], context=GROUPS) + oc.NoRegret(oc.CRPS(), oc.MSE(), context=GROUPS),
    ),
    "explicit": lambda: oc.Recalibrator(SPACE, oc.payoffs.MarginalCalibration([0.3, 0.6]) + oc.NoRegret(oc.CRPS())),
    "forgetting": lambda: oc.Recalibrator(SPACE, memory=30),
    "dense": lambda: oc.Recalibrator(SPACE, oc.NoRegret(oc.scores.QuantileScore([0.1, 0.9])) + oc.MomentMatching(1)),
    "binary": lambda: oc.Recalibrator(oc.Binary()),
    "binary without regret": lambda: oc.Recalibrator(oc.Binary(), oc.BinaryCalibration()),
    "labels": lambda: oc.Recalibrator(LABELS),
    "circle": lambda: oc.Recalibrator(oc.Circle(24, cells=12)),
}
QUICK = ["ordered", "groups", "binary", "labels"]


def said(game: Any, rng: np.random.Generator) -> Any:
    """Something that an expert might say."""
    space = game.space
    if isinstance(space, oc.Binary):
        return float(rng.uniform(0.05, 0.95))
    if isinstance(space, (oc.Interval, oc.Line)):
        return oc.Normal(float(rng.uniform(0.2, 0.8)), float(rng.uniform(0.03, 0.2)))
    return rng.dirichlet(np.ones(space.cells))


def features(t: int) -> dict[str, str]:
    return {"day": "MT"[t % 3 == 0]}


def arrays(game: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in engine_of(game).arrays().items()}


def nature(game: Any, id: Any = None) -> Any:
    """The outcome that harms most."""
    return worst_outcome(game, id)[0]


def budget(game: Any) -> float:
    return float(engine_of(game).ledger.account[Account.BUDGET])


# --- the promise ---


@pytest.mark.parametrize("kind", GAMES)
def test_the_promise_goes_on_under_attack(kind: str) -> None:
    """Experts join and leave every few rounds, and Nature sees each forecast; who left is owed what he was owed."""
    game, rng = GAMES[kind](), np.random.default_rng(1)
    present: list[str] = ["tree"]
    gone = slack_used = 0.0
    discount = engine_of(game).bound_payoff.discount
    for t in range(90 if kind in ("dense", "circle", "labels", "explicit") else 200):
        if t % 4 == 1:
            new = f"expert {t}" if t % 8 == 1 else NAMES[int(rng.integers(4))]
            present.append(new) if new not in present else None
        if t % 7 == 6 and len(game.experts) > 1:
            name = game.experts[int(rng.integers(len(game.experts)))]
            before, square = budget(game), engine_of(game).ledger.square
            game.leave(name)
            owed = square - engine_of(game).ledger.square
            gone += owed
            assert budget(game) == pytest.approx(before - owed, abs=1e-9)
            present = [other for other in present if other != name] or [game.experts[0]]
        some = [name for name in present if rng.random() < 0.7] or present[:1]
        p = game.predict(experts={name: said(game, rng) for name in some}, x=features(t))
        game.update(nature(game))
        gone *= discount**2
        g = game.guarantee
        check_kept(g)
        assert engine_of(game).ledger.square + gone <= (budget(game) + gone) * (1 + 1e-9)
        slack_used += not p.certificate.holds
    assert g.held > 0.97
    assert g.rounds == t + 1
    assert slack_used <= 0.03 * g.rounds


def test_the_promise_is_no_more_than_the_experts_that_were_there_ask_for() -> None:
    """B_t counts those who are in a round: one that sleeps, or has left, widens no promise."""
    few, many = oc.Recalibrator(SPACE), oc.Recalibrator(SPACE)
    rng = np.random.default_rng(0)
    for t in range(60):
        a, y = said(few, rng), float(rng.random())
        few.predict(experts={"tree": a})
        many.predict(experts={"tree": a, **({"net": a} if t == 20 else {})})
        few.update(y)
        many.update(y)
    assert few.guarantee.promised <= many.guarantee.promised <= few.guarantee.promised * 1.01


def test_regret_against_one_that_joined_counts_from_then_on() -> None:
    game, rng = oc.Recalibrator(SPACE), np.random.default_rng(0)
    for t in range(60):
        experts = {"tree": oc.Normal(0.2, 0.1), **({"net": oc.Normal(0.5, 0.05)} if t >= 20 else {})}
        p = game.predict(experts=experts)
        assert p.certificate.holds
        game.update(float(np.clip(rng.normal(0.5, 0.05), 0, 1)))
    assert game.experts == ("tree", "net")
    assert game.guarantee.parts["regret crps against net"] < 0.02
    assert game.guarantee.parts["regret crps against tree"] < -0.1


# --- pending rounds ---


@pytest.mark.parametrize("kind", GAMES)
def test_rounds_issued_before_settle_as_they_would_have(kind: str) -> None:
    """What was promised in a pending round, its payoffs and contexts, is the same after others have joined."""
    game, rng = GAMES[kind](), np.random.default_rng(2)
    game.predict(experts={"tree": said(game, rng), "net": said(game, rng)}, x=features(0))
    game.update(nature(game))
    game.predict(experts={"tree": said(game, rng)}, x=features(0), id="waits")
    y = nature(game, "waits")
    at = game.rounds.pending["waits"].record
    canonical = game.space.outcome(y)
    payoff, context = engine_of(game).payoff(at, canonical), engine_of(game).context_of(at).copy()
    alone = copy.deepcopy(game)
    game.predict(experts={"tree": said(game, rng), "new": said(game, rng)}, x=features(1), id="other")
    game.drop("other")
    after = game.rounds.pending["waits"].record
    again = engine_of(game).payoff(after, canonical)
    assert again[again != 0.0].tolist() == payoff[payoff != 0.0].tolist()
    assert engine_of(game).context_of(after).tolist() == context.tolist()
    game.update(y, id="waits")
    alone.update(y, id="waits")
    assert game.guarantee.miscalibration == pytest.approx(alone.guarantee.miscalibration)
    assert game.guarantee.promised == pytest.approx(alone.guarantee.promised)
    assert budget(game) == pytest.approx(budget(alone))


@pytest.mark.parametrize("kind", QUICK)
def test_late_outcomes_while_experts_come_and_go(kind: str) -> None:
    game, rng = GAMES[kind](), np.random.default_rng(3)
    for t in range(60):
        names = [NAMES[i] for i in range(4) if (t // 5 + i) % 3] or ["tree"]
        game.predict(experts={name: said(game, rng) for name in names}, x=features(t), id=t)
        for name in game.experts:
            if t % 9 == 8 and len(game.experts) > 2 and not game.rounds.with_expert(game.experts.index(name)):
                game.leave(name)
        if t >= 6:
            y = float(rng.random()) if isinstance(game.space, oc.Interval) else game.space.value(int(rng.integers(2)))
            game.update(y, id=t - 6)
        check_kept(game.guarantee)
    assert game.guarantee.held > 0.9


def test_who_is_in_a_pending_round_cannot_leave() -> None:
    game, rng = oc.Recalibrator(SPACE), np.random.default_rng(0)
    game.predict(experts={"tree": said(game, rng), "net": said(game, rng)}, id="waits")
    game.predict(experts={"net": said(game, rng)}, id="later")
    before = arrays(game)
    for name, got in (("net", "2"), ("tree", "1"), ("forest", "'forest'")):
        with pytest.raises(ValueError, match=SENTENCE) as caught:
            game.leave(name)
        assert got in str(caught.value)
    assert arrays(game) == before
    assert game.experts == ("tree", "net")
    game.update(0.4, id="waits")
    game.leave("tree")
    game.update(0.4, id="later")
    with pytest.raises(ValueError, match=SENTENCE):
        game.leave("net")


def test_who_is_left_alone_is_in_every_pending_round() -> None:
    game = oc.Forecaster(SPACE, oc.NoRegret(oc.CRPS()))
    game.predict(experts={"tree": oc.Normal(0.5, 0.1), "net": oc.Normal(0.4, 0.1)})
    game.update(0.5)
    game.predict(id="nobody")
    with pytest.raises(ValueError, match=SENTENCE):
        game.leave("tree")
    game.update(0.5, id="nobody")
    game.leave("tree")
    assert game.experts == ("net",)


# --- names ---


@pytest.mark.parametrize("kind", ["ordered", "binary", "labels", "dense"])
def test_a_single_forecast_is_the_expert_named_expert(kind: str) -> None:
    one, other = GAMES[kind](), GAMES[kind]()
    rng = np.random.default_rng(4)
    for t in range(12):
        a, b = said(one, rng), said(one, rng)
        y = float(rng.random()) if isinstance(one.space, oc.Interval) else one.space.value(int(rng.integers(2)))
        for game, alone in ((one, a), (other, None)):
            if t % 3 == 2:
                game.predict(experts={"expert": a, "net": b})
            elif alone is not None:
                game.predict(alone)
            else:
                game.predict(experts={"expert": a})
            game.update(y)
    assert arrays(one) == arrays(other)
    assert one.experts == ("expert", "net")


def test_several_may_go_on_as_one() -> None:
    game = oc.Recalibrator(SPACE)
    game.predict(experts={"tree": oc.Normal(0.5, 0.1), "net": oc.Normal(0.4, 0.1)})
    game.update(0.5)
    with pytest.raises(TypeError, match=r"expected experts= with forecasts by name.*got one without a name"):
        game.predict(oc.Normal(0.5, 0.1))
    game.predict(experts={"expert": oc.Normal(0.5, 0.1)})
    game.update(0.6)
    assert game.experts == ("tree", "net", "expert")
    for name in ("tree", "net"):
        game.leave(name)
    assert game.predict(oc.Normal(0.5, 0.1)).certificate.holds
    game.update(0.6)
    assert game.experts == ("expert",)
    assert set(game.guarantee.parts) == {"quantile", "moment", "regret crps"}


@pytest.mark.parametrize("kind", QUICK)
def test_a_history_is_the_rounds_one_by_one(kind: str) -> None:
    """Also where an expert joins in the middle of the game, and is missing in some rounds."""
    whole, loop = GAMES[kind](), GAMES[kind]()
    rng = np.random.default_rng(5)
    for names in (("tree",), ("tree", "net"), ("arima", "net")):
        said_by = {name: [said(whole, rng) if rng.random() < 0.8 else None for _ in range(10)] for name in names}
        said_by[names[0]] = [said(whole, rng) for _ in range(10)]
        y = [whole.space.value(int(k)) if kind in ("binary", "labels") else k / 3 for k in rng.integers(0, 2, 10)]
        whole.run(experts=said_by, outcomes=y, x=[features(t) for t in range(10)])
        for t in range(10):
            loop.predict(experts={name: each[t] for name, each in said_by.items()}, x=features(t))
            loop.update(y[t])
        assert whole.experts == loop.experts
        assert arrays(whole) == arrays(loop)


def test_a_history_that_is_refused_lets_nobody_join() -> None:
    payoff = oc.QuantileCalibration([0.5], context=oc.by("day", values="MT")) + oc.payoffs.MarginalCalibration([0.5])
    game = oc.Recalibrator(SPACE, payoff)
    game.predict(experts={"tree": oc.Normal(0.4, 0.1)}, x=features(0))
    game.update(0.3)
    before = arrays(game)
    with pytest.raises(ValueError, match=SENTENCE):
        game.run(experts={"net": [oc.Normal(0.4, 0.1)] * 2}, outcomes=[0.1, 0.2], x=[{"day": "M"}, {"day": "S"}])
    assert game.experts == ("tree",)
    assert arrays(game) == before


def test_too_many_are_refused() -> None:
    game = oc.Recalibrator(SPACE)
    game.predict(experts={"tree": oc.Normal(0.5, 0.1)})
    game.update(0.5)
    before = arrays(game)
    with pytest.raises(ValueError, match=r"expected at most 1000 experts, got 1001"):
        game.predict(experts={str(i): oc.Normal(0.5, 0.1) for i in range(1000)})
    with pytest.raises(ValueError, match=SENTENCE):
        game.predict(experts={"net": None})
    assert arrays(game) == before
    assert game.experts == ("tree",)


def test_looking_lets_nobody_join() -> None:
    game = oc.Recalibrator(SPACE)
    game.predict(experts={"tree": oc.Normal(0.5, 0.1)}, id="waits")
    p = game.peek(experts={"tree": oc.Normal(0.5, 0.1), "net": oc.Normal(0.4, 0.1)})
    assert game.experts == ("tree",)
    q = game.predict(experts={"tree": oc.Normal(0.5, 0.1), "net": oc.Normal(0.4, 0.1)}, id="next")
    assert p.mass.tolist() == q.mass.tolist()


@pytest.mark.parametrize("kind", GAMES)
def test_a_mistyped_name_is_forgotten_with_its_round(kind: str, tmp_path: Path) -> None:
    game, rng = GAMES[kind](), np.random.default_rng(8)
    for t in range(3):
        game.predict(experts={"tree": said(game, rng), "net": said(game, rng)}, x=features(t))
        game.update(nature(game, None))
    before = arrays(game)
    for ending in ("drop", "replace", "load", "copy"):
        game.predict(experts={"tree": said(game, rng), "nte": said(game, rng)}, x=features(3))
        assert game.experts == ("tree", "net", "nte")
        if ending == "replace":
            game.predict(experts={"tree": said(game, rng)}, x=features(3))
            assert game.experts == ("tree", "net")
        elif ending == "load":
            game.save(tmp_path / "state")
            game = oc.Recalibrator.load(tmp_path / "state")
        elif ending == "copy":
            game = pickle.loads(pickle.dumps(game))
        game.drop()
        assert game.experts == ("tree", "net")
        assert arrays(game) == before


def test_who_was_in_a_settled_round_stays() -> None:
    game = oc.Recalibrator(SPACE)
    one = {"tree": oc.Normal(0.5, 0.1)}
    two = one | {"net": oc.Normal(0.4, 0.1)}
    game.predict(experts=one, id="a")
    game.predict(experts=two, id="b")
    game.predict(experts=two | {"arima": None}, id="c")
    game.drop("b")
    assert game.experts == ("tree", "net", "arima")
    game.update(0.5, id="c")
    game.drop("a")
    assert game.experts == ("tree", "net", "arima")


def test_a_game_whose_first_rounds_are_dropped_has_not_begun() -> None:
    game = oc.Recalibrator(SPACE)
    game.predict(experts={"tree": oc.Normal(0.5, 0.1), "nte": oc.Normal(0.5, 0.1)})
    game.drop()
    game.predict(experts={"tree": oc.Normal(0.5, 0.1)})
    assert game.experts == ("tree",)
    twin = oc.Recalibrator(SPACE)
    twin.predict(experts={"tree": oc.Normal(0.5, 0.1)})
    assert arrays(game) == arrays(twin)


def test_who_was_in_a_history_stays() -> None:
    game = oc.Recalibrator(SPACE)
    two = {"tree": oc.Normal(0.5, 0.1), "net": oc.Normal(0.4, 0.1)}
    game.predict(experts=two)
    game.drop()
    game.run(experts={name: [each] * 3 for name, each in two.items()}, outcomes=[0.5, 0.4, 0.6])
    game.predict(experts=two | {"nte": oc.Normal(0.4, 0.1)})
    game.drop()
    assert game.experts == ("tree", "net")


def test_looking_does_not_make_a_name_stay() -> None:
    game = oc.Recalibrator(SPACE)
    game.predict(experts={"tree": oc.Normal(0.5, 0.1), "nte": oc.Normal(0.4, 0.1)})
    game.drop()
    game.peek(experts={"tree": oc.Normal(0.5, 0.1)})
    game.predict(experts={"tree": oc.Normal(0.5, 0.1)})
    assert game.experts == ("tree",)


def test_one_that_would_be_left_alone_waits() -> None:
    game = oc.Forecaster(SPACE, oc.NoRegret(oc.CRPS()))
    game.predict(oc.Normal(0.5, 0.1))
    game.update(0.5)
    game.predict(experts={"expert": oc.Normal(0.5, 0.1), "nte": oc.Normal(0.4, 0.1)}, id="two")
    game.predict(id="nobody")
    game.drop("two")
    assert game.experts == ("expert", "nte")
    game.drop("nobody")
    assert game.experts == ("expert",)


# --- any order, and states ---

steps = st.lists(
    st.tuples(
        st.sampled_from(["predict", "update", "drop", "leave", "save", "pickle"]),
        st.integers(0, 15),
        st.integers(0, 99),
    ),
    min_size=4,
    max_size=25,
)


@pytest.mark.parametrize("kind", QUICK)
@given(steps=steps)
@settings(max_examples=15, deadline=None)
def test_any_order(kind: str, steps: list[tuple[str, int, int]], tmp_path_factory: Any) -> None:
    """The promise is kept, and a game that was saved, pickled or copied goes on as it would have."""
    game = GAMES[kind]()
    path = tmp_path_factory.mktemp("state") / "state"
    for step, (what, mask, seed) in enumerate(steps):
        rng = np.random.default_rng(seed)
        if what == "predict":
            names = [name for i, name in enumerate(NAMES) if mask & (1 << i)] or ["tree"]
            game.predict(experts={name: said(game, rng) for name in names}, x=features(seed), id=step)
        elif what == "update" and game.pending:
            y = float(rng.random()) if isinstance(game.space, oc.Interval) else game.space.value(int(rng.integers(2)))
            game.update(y, id=game.pending[-1])
        elif what == "drop" and game.pending:
            game.drop(game.pending[mask % len(game.pending)])
        elif what == "leave":
            name = game.experts[mask % len(game.experts)]
            try:
                game.leave(name)
            except ValueError as reason:
                assert "got" in str(reason)  # noqa: PT017
            else:
                assert name not in game.experts
        elif what in ("save", "pickle"):
            before = game
            if what == "save":
                game.save(path)
                game = oc.Recalibrator.load(path)
            else:
                game = pickle.loads(pickle.dumps(copy.deepcopy(game)))
            assert arrays(game) == arrays(before)
            assert game.experts == before.experts
            assert game.pending == before.pending
        check_kept(game.guarantee)
    for id in game.pending:
        game.update(0.5 if isinstance(game.space, oc.Interval) else game.space.value(0), id=id)
    check_kept(game.guarantee)


@pytest.mark.parametrize("kind", GAMES)
def test_a_state_in_the_middle(kind: str, tmp_path: Path) -> None:
    game, rng = GAMES[kind](), np.random.default_rng(6)
    game.predict(experts={"tree": said(game, rng)}, x=features(0), id="first")
    game.predict(experts={"tree": said(game, rng), "net": said(game, rng)}, x=features(1), id="second")
    y = nature(game, "first")
    game.update(y, id="first")
    game.save(tmp_path / "state")
    twins = [game, oc.Recalibrator.load(tmp_path / "state"), copy.deepcopy(game)]
    last = said(game, rng)
    for each in twins:
        each.predict(experts={"arima": last}, x=features(2))
        each.update(y)
        each.update(y, id="second")
        each.leave("tree")
        each.predict(experts={"net": last}, x=features(3))
        each.update(y)
    assert all(arrays(each) == arrays(game) for each in twins)
    assert all(each.guarantee == game.guarantee for each in twins)


# --- weights ---


def test_who_joins_has_a_fair_share() -> None:
    """At each level the mean weight of the others: it neither dominates nor is ignored."""
    game, rng = oc.Recalibrator(SPACE), np.random.default_rng(0)
    for _ in range(100):
        game.predict(experts={"good": oc.Normal(0.5, 0.05), "bad": oc.Normal(0.9, 0.05)})
        game.update(float(rng.normal(0.5, 0.05)))
    game.predict(experts={"good": oc.Normal(0.5, 0.05), "new": oc.Normal(0.8, 0.05)})
    losses = engine_of(game).memory.expert_loss
    for level in range(losses.shape[1]):
        scores = [round_kernels.log_weight(*losses[e, level].tolist()) for e in range(3)]
        weights = np.exp(-np.array(scores))
        assert weights[2] == pytest.approx(weights[:2].mean())
    assert losses[2, :, ExpertLoss.SQUARES] == pytest.approx(losses[:2, :, ExpertLoss.SQUARES].mean(axis=0))


def test_mean_weight() -> None:
    assert np.exp(-2.0 * mean_weight([1.0, 4.0, 2.0], 2.0)) == pytest.approx(np.exp([-2.0, -8.0, -4.0]).mean())


def middle_and_tails(rounds: int, seed: int) -> tuple[dict[str, Any], Any]:
    """Quantiles of two experts, one that knows the middle and one that knows the tails, and the outcomes."""
    rng, levels = np.random.default_rng(seed), oc.metrics.LEVELS
    z = ndtri(levels)
    centre, spread = rng.normal(0, 3, rounds), np.exp(rng.normal(0, 0.3, rounds))
    truth = centre[:, None] + spread[:, None] * z
    tail = np.clip((np.abs(levels - 0.5) - 0.25) / 0.1, 0, 1)
    middle = truth + tail * (spread * rng.normal(0, 2.0, rounds))[:, None] * np.sign(z)
    tails = truth + (1 - tail) * (spread * rng.normal(0, 1.0, rounds))[:, None]
    said_by = {"middle": np.sort(middle, axis=1), "tails": np.sort(tails, axis=1)}
    return said_by, centre + spread * rng.normal(size=rounds)


def test_weights_by_level_beat_the_best_single_one() -> None:
    """The target is 0.97 of the better one's; with one weight for all levels no better than it recalibrated alone."""
    said_by, y = middle_and_tails(1500, 0)
    levels = oc.metrics.LEVELS
    ours = oc.metrics.pinball(oc.Recalibrator().run(experts=said_by, outcomes=y, levels=levels, at=levels), y).mean()
    alone = [oc.Recalibrator().run(rows, y, levels=levels, at=levels) for rows in said_by.values()]
    assert ours <= 0.95 * min(oc.metrics.pinball(rows, y).mean() for rows in said_by.values())
    assert ours <= 0.985 * min(oc.metrics.pinball(rows, y).mean() for rows in alone)


def test_the_quantiles_of_the_pool_are_in_order() -> None:
    """Two experts far from each other with opposite standing at neighbouring levels."""
    game = oc.Recalibrator(oc.Interval(0, 1))
    game.predict(experts={"low": oc.Normal(0.2, 0.01), "high": oc.Normal(0.8, 0.01)})
    game.update(0.5)
    memory = engine_of(game).memory
    levels = memory.expert_loss.shape[1]
    memory.expert_loss[:, :, ExpertLoss.SQUARES] = 1.0
    memory.expert_loss[0, :, ExpertLoss.BEHIND] = np.where(np.arange(levels) < levels // 2, 2.0, -2.0)
    memory.expert_loss[1] = memory.expert_loss[0] * [-1.0, 1.0]
    p = game.predict(experts={"low": oc.Normal(0.2, 0.01), "high": oc.Normal(0.8, 0.01)})
    pool = game.rounds.pending[None].record.round.raw
    assert (np.diff(pool) >= 0.0).all()
    assert pool[0] < 0.3
    assert pool[-1] > 0.7
    assert p.certificate.holds


# --- what sleeping costs ---


@pytest.mark.parametrize("kind", ["ordered", "binary"])
def test_one_that_sleeps_costs_nothing(kind: str) -> None:
    """Thirty that sleep change no number of the others, and hardly the time of a round."""
    rng = np.random.default_rng(7)
    awake, crowded = GAMES[kind](), GAMES[kind]()
    names = [f"asleep {i}" for i in range(30)]
    a = {"tree": said(awake, rng), "net": said(awake, rng)}
    y = 1 if kind == "binary" else 0.5
    for game, first in ((awake, a), (crowded, {**a, **dict.fromkeys(names)})):
        for _ in range(5):
            game.predict(experts=first)
            game.update(y)
    assert awake.predict(experts=a).mean() == pytest.approx(crowded.predict(experts=a).mean(), abs=1e-12)
    best = {}
    for game in (awake, crowded) * 5:
        start = process_time()  # what others do on the machine does not count
        for _ in range(40):
            game.predict(experts=a)
            game.update(y)
        best[game is crowded] = min(best.get(game is crowded, np.inf), process_time() - start)
    # thirty that are awake would take some ten times as long
    assert best[True] < 2.5 * best[False]
    for name in names:
        crowded.leave(name)
    assert crowded.experts == awake.experts
    assert {name: len(each) for name, each in arrays(crowded).items()} == {
        name: len(each) for name, each in arrays(awake).items()
    }
