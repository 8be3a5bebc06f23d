"""Experts that are missing in some rounds, and names that the first round did not have."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

import orcast as oc
from helpers import check_kept, engine_of
from orcast.testing import worst_outcome

SPACE = oc.Interval(0, 1, cells=24, tail_cells=3)
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
    "explicit": lambda: oc.Recalibrator(
        SPACE, oc.payoffs.ThresholdCalibration([0.3, 0.6], grid=1) + oc.NoRegret(oc.CRPS())
    ),
    "forgetting": lambda: oc.Recalibrator(SPACE, memory=30),
    "dense": lambda: oc.Recalibrator(SPACE, oc.NoRegret(oc.CRPS(), unit="score") + oc.MomentMatching(1)),
    "binary": lambda: oc.Recalibrator(oc.Binary()),
    "binary without regret": lambda: oc.Recalibrator(oc.Binary(), oc.BinaryCalibration()),
    "labels": lambda: oc.Recalibrator(oc.Labels(["a", "b", "c"])),
    "circle": lambda: oc.Recalibrator(oc.Circle(24, cells=12)),
}
QUICK = ["ordered", "groups", "binary", "labels"]


def forecast_for(recal: Any, rng: np.random.Generator) -> Any:
    space = recal.space
    if isinstance(space, oc.Binary):
        return float(rng.uniform(0.05, 0.95))
    if isinstance(space, (oc.Interval, oc.Line)):
        return oc.Normal(float(rng.uniform(0.2, 0.8)), float(rng.uniform(0.03, 0.2)))
    return rng.dirichlet(np.ones(space.cells))


def some_outcome(recal: Any, rng: np.random.Generator) -> Any:
    return float(rng.random()) if isinstance(recal.space, oc.Interval) else recal.space.value(int(rng.integers(2)))


def some_experts(recal: Any, rng: np.random.Generator, share: float = 0.5) -> dict[str, Any]:
    """At least one of the experts, by chance."""
    present = [name for name in NAMES if rng.random() < share] or [NAMES[int(rng.integers(4))]]
    return {name: forecast_for(recal, rng) for name in present}


def first_round(recal: Any, rng: np.random.Generator) -> dict[str, Any]:
    """All names, but one expert only."""
    return {**dict.fromkeys(NAMES), "net": forecast_for(recal, rng)}


def features(t: int) -> dict[str, str]:
    return {"day": "MT"[t % 3 == 0]}


def arrays(recal: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in engine_of(recal).arrays().items()}


@pytest.mark.parametrize("kind", GAMES)
def test_bound_holds_under_attack(kind: str) -> None:
    recal, rng = GAMES[kind](), np.random.default_rng(1)
    for t in range(60 if kind in ("dense", "circle", "labels", "explicit") else 150):
        recal.predict(experts=some_experts(recal, rng) if t else first_round(recal, rng), x=features(t))
        recal.update(worst_outcome(recal, None)[0])
        check_kept(recal.guarantee)
    assert recal.experts == NAMES
    assert recal.guarantee.held > 0.97


def test_missing_expert_does_not_widen_the_bound() -> None:
    few, many = oc.Recalibrator(SPACE), oc.Recalibrator(SPACE)
    rng = np.random.default_rng(0)
    for t in range(60):
        a, y = forecast_for(few, rng), float(rng.random())
        few.predict(experts={"tree": a, "other": None})
        many.predict(experts={"tree": a, "other": a if t == 20 else None})
        few.update(y)
        many.update(y)
    assert few.guarantee.promised <= many.guarantee.promised <= few.guarantee.promised * 1.01


def test_regret_counts_from_the_first_round_of_an_expert() -> None:
    recal, rng = oc.Recalibrator(SPACE), np.random.default_rng(0)
    for t in range(60):
        p = recal.predict(experts={"tree": oc.Normal(0.2, 0.1), "net": oc.Normal(0.5, 0.05) if t >= 20 else None})
        assert p.certificate.holds
        recal.update(float(np.clip(rng.normal(0.5, 0.05), 0, 1)))
    assert recal.guarantee.parts["regret crps against net"] < 0.02
    assert recal.guarantee.parts["regret crps against tree"] < -0.1


@pytest.mark.parametrize("kind", QUICK)
def test_late_outcomes_and_states(kind: str, tmp_path: Path) -> None:
    """Outcomes come six rounds late; a game that was saved or pickled in between continues equally."""
    recal, rng = GAMES[kind](), np.random.default_rng(3)
    twin = None
    for t in range(40):
        experts = some_experts(recal, rng) if t else first_round(recal, rng)
        y = some_outcome(recal, rng)
        for each in filter(None, (recal, twin)):
            each.predict(experts=experts, x=features(t), id=t)
            if t >= 6:
                each.update(y, id=t - 6)
        check_kept(recal.guarantee)
        if t == 3:
            recal.save(tmp_path / "state")
            twin = pickle.loads(pickle.dumps(oc.Recalibrator.load(tmp_path / "state")))
    assert recal.guarantee.held > 0.9
    assert twin is not None
    assert arrays(twin) == arrays(recal)


@pytest.mark.parametrize("kind", QUICK)
def test_run_equals_single_rounds(kind: str) -> None:
    whole, loop = GAMES[kind](), GAMES[kind]()
    rng = np.random.default_rng(5)
    for names in (NAMES, ("tree", "net"), ("arima", "net")):
        by_name = {
            name: [forecast_for(whole, rng) if rng.random() < 0.8 else None for _ in range(10)] for name in names
        }
        by_name[names[0]] = [forecast_for(whole, rng) for _ in range(10)]
        y = [some_outcome(whole, rng) for _ in range(10)]
        whole.run(experts=by_name, outcomes=y, x=[features(t) for t in range(10)])
        for t in range(10):
            loop.predict(experts={name: each[t] for name, each in by_name.items()}, x=features(t))
            loop.update(y[t])
        assert arrays(whole) == arrays(loop)
    a = forecast_for(whole, rng)
    for experts, match in (
        ({"tree": [a, None], "net": [None, None]}, "at least one expert in each round, got none in row 1"),
        ({"tree": [a], "net": []}, "expected as many forecasts of each expert"),
    ):
        with pytest.raises(ValueError, match=match):
            whole.run(experts=experts, outcomes=y[: len(experts["tree"])], x=[features(0)] * len(experts["tree"]))
    assert arrays(whole) == arrays(loop)


@pytest.mark.parametrize("kind", ["ordered", "binary", "labels", "dense"])
def test_unknown_name_is_rejected_and_changes_nothing(kind: str) -> None:
    recal, rng = GAMES[kind](), np.random.default_rng(4)
    a, b = forecast_for(recal, rng), forecast_for(recal, rng)
    recal.predict(experts={"tree": a, "net": None}, x=features(0))
    recal.update(some_outcome(recal, rng))
    before = arrays(recal)
    message = r"expected experts among \['tree', 'net'\], the names of the first round, got 'nte'"
    for call in (
        lambda: recal.predict(experts={"tree": a, "nte": b}, x=features(1)),
        lambda: recal.peek(experts={"tree": a, "nte": b}, x=features(1)),
        lambda: recal.run(experts={"nte": [a]}, outcomes=[some_outcome(recal, rng)], x=[features(1)]),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert arrays(recal) == before
    assert recal.experts == ("tree", "net")
    assert recal.pending == ()


def test_single_forecast_is_the_expert_named_expert() -> None:
    recal, twin = oc.Recalibrator(SPACE), oc.Recalibrator(SPACE)
    for m in (0.2, 0.4):
        recal.predict(oc.Normal(m, 0.1))
        twin.predict(experts={"expert": oc.Normal(m, 0.1)})
        recal.update(0.3)
        twin.update(0.3)
    assert arrays(recal) == arrays(twin)
    with pytest.raises(ValueError, match=r"expected experts among \['expert'\]"):
        recal.predict(experts={"expert": oc.Normal(0.5, 0.1), "net": oc.Normal(0.5, 0.1)})


def test_names_are_open_until_a_round_is_pending_or_settled() -> None:
    recal = oc.Recalibrator(SPACE)
    two = {"tree": oc.Normal(0.5, 0.1), "net": oc.Normal(0.4, 0.1)}
    recal.predict(experts={"tree": oc.Normal(0.5, 0.1), "nte": oc.Normal(0.4, 0.1)})
    recal.drop()
    recal.peek(experts={"other": oc.Normal(0.5, 0.1)})
    recal.predict(experts=two)
    assert recal.experts == ("tree", "net")
    with pytest.raises(ValueError, match="expected at least one expert"):
        recal.predict(experts=dict.fromkeys(two), id="none")


# --- weights of experts ---


def middle_and_tails(rounds: int, seed: int) -> tuple[dict[str, Any], Any]:
    """Quantiles of two experts, one that knows the middle and one that knows the tails, and the outcomes."""
    rng, levels = np.random.default_rng(seed), oc.metrics.LEVELS
    z = ndtri(levels)
    centre, spread = rng.normal(0, 3, rounds), np.exp(rng.normal(0, 0.3, rounds))
    truth = centre[:, None] + spread[:, None] * z
    tail = np.clip((np.abs(levels - 0.5) - 0.25) / 0.1, 0, 1)
    middle = truth + tail * (spread * rng.normal(0, 2.0, rounds))[:, None] * np.sign(z)
    tails = truth + (1 - tail) * (spread * rng.normal(0, 1.0, rounds))[:, None]
    return {"middle": np.sort(middle, axis=1), "tails": np.sort(tails, axis=1)}, centre + spread * rng.normal(
        size=rounds
    )


def test_weights_by_level_beat_the_best_single_expert() -> None:
    """With one weight for all levels the loss is no lower than that of the better expert recalibrated alone."""
    by_name, y = middle_and_tails(1500, 0)
    levels = oc.metrics.LEVELS
    ours = oc.metrics.pinball(oc.Recalibrator().run(experts=by_name, outcomes=y, levels=levels, at=levels), y).mean()
    alone = [oc.Recalibrator().run(rows, y, levels=levels, at=levels) for rows in by_name.values()]
    assert ours <= 0.95 * min(oc.metrics.pinball(rows, y).mean() for rows in by_name.values())
    assert ours <= 0.99 * min(oc.metrics.pinball(rows, y).mean() for rows in alone)
