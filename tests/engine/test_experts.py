"""Several experts: no regret against each that is there."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orcast as oc
from helpers import SENTENCE, engine_of, record_of
from orcast.testing import worst_outcome

SPACE = oc.Interval(0, 1, cells=24, tail_cells=3)
LABELS = oc.Labels(["a", "b", "c"])


def tree(t: int) -> oc.Normal:
    return oc.Normal(0.5 + 0.3 * np.sin(t / 3), 0.05)


def net(t: int) -> oc.Normal:
    return oc.Normal(0.5 + 0.3 * np.sin(t / 3 + 0.4), 0.08)


def both(t: int) -> dict[str, object]:
    return {"tree": tree(t), "net": net(t)}


def outcome(t: int) -> float:
    return float(np.clip(np.random.default_rng(t).normal(0.5 + 0.3 * np.sin(t / 3), 0.06), 0, 1))


def arrays(recal: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in engine_of(recal).arrays().items()}


# --- the promise ---


@pytest.mark.parametrize("scores", [(oc.CRPS(),), (oc.CRPS(), oc.MSE())], ids=["crps", "both"])
def test_regret_against_each_is_kept_under_attack(scores: tuple[Any, ...]) -> None:
    recal = oc.Recalibrator(SPACE, oc.QuantileCalibration([0.1, 0.5, 0.9]) + oc.NoRegret(*scores))
    excess = {f"regret {score.name} against {who}": 0.0 for score in scores for who in ("tree", "net", "odd")}
    kinds = {score.name: score for score in scores}
    for t in range(1, 201):
        experts = {**both(t), "odd": oc.Normal(0.9, 0.01)}
        p = recal.predict(experts=experts)
        y, worst = worst_outcome(recal)
        assert worst <= p.certificate.worst_next * (1 + 1e-9)
        rivals = {
            who: oc.Forecast(p.left, p.right, record_of(recal).view("rivals")[i, : p.mass.size])
            for i, who in enumerate(experts)
        }
        for name in excess:
            _, score, _, who = name.split()
            excess[name] += kinds[score](p, y) - kinds[score](rivals[who], y)
        recal.update(y)
        g = recal.guarantee
        assert g.miscalibration <= g.promised
        # the plain mean excess score of each, in its own units
        assert g.parts == pytest.approx({"quantile": g.parts["quantile"], **{k: v / t for k, v in excess.items()}})
    assert set(g.parts) == {"quantile", *excess}
    assert g.held > 0.98


@pytest.mark.parametrize("space", [oc.Line(), LABELS, oc.Binary()], ids=str)
def test_the_pool_changes_its_mind(space: Any) -> None:
    """Two experts who swap places: soon after, the better one gets its weight back."""
    rng = np.random.default_rng(0)
    loss = np.empty((900, 2))
    both_of_them, alone = oc.Recalibrator(space), oc.Recalibrator(space)
    for t in range(900):
        if isinstance(space, oc.Line):
            centre = rng.normal(0, 3)
            y: Any = centre + rng.normal(0, 2)
            sharp, vague = oc.Normal(centre, 2), oc.Normal(centre + rng.normal(0, 4), 2)
        elif isinstance(space, oc.Binary):
            sharp, vague = rng.choice([0.1, 0.9]), 0.5
            y = int(rng.random() < sharp)
        else:
            sharp, vague = rng.permutation([0.9, 0.05, 0.05]), [0.3, 0.3, 0.4]
            y = "abc"[int(rng.choice(3, p=sharp))]
        first, second = (sharp, vague) if t < 500 else (vague, sharp)
        for i, p in enumerate((both_of_them.predict(experts={"one": first, "two": second}), alone.predict(sharp))):
            loss[t, i] = p.crps(y) if isinstance(space, oc.Line) else -np.log(p.probability(y))
        both_of_them.update(y)
        alone.update(y)
    assert loss[600:, 0].mean() < 1.05 * loss[600:, 1].mean()


# --- who is there ---


@pytest.mark.parametrize(
    "experts",
    [
        {},
        {"tree": None, "net": None},
        {"tree": None},
        {"forest": None},
        {"tree": tree(0), "forest": "text"},
        {1: tree(0)},
        [tree(0)],
        tree(0),
        {"tree": "text"},
    ],
    ids=repr,
)
def test_rejected_input_changes_nothing(experts: Any, tmp_path: Path) -> None:
    recal = oc.Recalibrator(SPACE)
    recal.predict(experts=both(0))
    recal.update(0.5)
    recal.predict(experts=both(1))
    recal.save(tmp_path / "before")
    for id in (None, "new"):
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            recal.predict(experts=experts, id=id)
        recal.save(tmp_path / "after")
        assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


def test_a_forecast_and_experts_are_one_too_many() -> None:
    with pytest.raises(TypeError, match=SENTENCE):
        oc.Recalibrator(SPACE).predict(tree(0), experts=both(0))


def test_the_order_in_which_they_come_does_not_matter() -> None:
    one, other = oc.Recalibrator(SPACE), oc.Recalibrator(SPACE)
    for t in range(20):
        one.predict(experts=both(t))
        other.predict(experts=both(t) if t == 0 else dict(reversed(both(t).items())))
        one.update(outcome(t))
        other.update(outcome(t))
    assert arrays(one) == arrays(other)
