"""What docs/architecture.md says of adding things: its page is run, and what it defines is attacked."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from test_docs import ROOT, blocks

import orcast as oc
from contract import check_all
from helpers import SENTENCE
from orcast.testing import worst_outcome

SMALL = oc.Interval(0, 500, cells=16, tail_cells=2)


@pytest.fixture(scope="module")
def record() -> Iterator[Any]:
    module = ModuleType("architecture")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "architecture", module)
        path = ROOT / "docs" / "architecture.md"
        for line, code, _ in blocks(path.read_text(encoding="utf-8")):
            exec(compile("\n" * (line - 1) + code, str(path), "exec"), module.__dict__)
        yield module


def test_an_adapter(record: Any) -> None:
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    from scipy.stats import laplace

    theirs = laplace(120, 15)
    assert record.Laplace(120, 15).ppf(levels) == pytest.approx(theirs.ppf(levels))
    ours, twin = oc.Recalibrator(SMALL), oc.Recalibrator(SMALL)
    for y in (100.0, 131.0, 240.0, 90.0):
        a, b = ours.predict(record.Laplace(120, 15)), twin.predict(theirs)
        assert a.quantile(levels) == pytest.approx(b.quantile(levels), rel=1e-8)
        ours.update(y)
        twin.update(y)


@pytest.mark.parametrize("context", [None, "hour"])
def test_a_payoff(record: Any, context: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def definition(payoff: Any, space: Any, forecast: Any, y: float, *rest: Any) -> Any:
        return np.array([forecast.expect(lambda z: payoff.over(space, z)) - payoff.over(space, y)])

    monkeypatch.setattr(record.Excess, "evaluate", definition, raising=False)
    groups = None if context is None else oc.by("hour", values=range(3))
    payoff = record.Excess(400, context=groups)
    check_all(payoff, SMALL, x=None if context is None else (lambda rng: {"hour": int(rng.integers(3))}), rounds=60)


def test_a_payoff_is_saved_and_kept_small(record: Any, tmp_path: Path) -> None:
    def forecaster() -> oc.Forecaster:
        return oc.Forecaster(SMALL, oc.QuantileCalibration([0.5]) + record.Excess(400))

    recal = forecaster()
    for _ in range(80):
        recal.predict(oc.Normal(380, 30))
        recal.update(worst_outcome(recal)[0])
    assert recal.guarantee.miscalibration <= recal.guarantee.promised
    assert recal.guarantee.held == 1.0
    recal.save(tmp_path / "state")
    again = oc.Forecaster.load(tmp_path / "state", payoff=forecaster().payoff)
    assert again.predict(oc.Normal(380, 30)).mean() == recal.predict(oc.Normal(380, 30)).mean()
    with pytest.raises(ValueError, match=SENTENCE):
        oc.Forecaster.load(tmp_path / "state", payoff=oc.QuantileCalibration([0.5]) + record.Excess(401))
    with pytest.raises(TypeError, match=SENTENCE):
        oc.Recalibrator(oc.Binary(), record.Excess(400))


@pytest.mark.parametrize("space", [oc.Interval(0, 1, cells=16, tail_cells=2), oc.Labels(["a", "b", "c"])], ids=str)
def test_an_oracle(record: Any, space: Any) -> None:
    payoff = oc.QuantileCalibration() if space.ordered else oc.LabelCalibration()
    expert: Any = oc.Normal(0.5, 0.1) if space.ordered else [0.2, 0.2, 0.6]
    forecaster = oc.Forecaster(space, payoff, oracle=record.Patient())
    for _ in range(60):
        p = forecaster.predict(expert)
        assert p.certificate is not None
        assert p.certificate.holds
        forecaster.update(worst_outcome(forecaster)[0])
    assert forecaster.guarantee.miscalibration <= forecaster.guarantee.promised
    assert forecaster.guarantee.held == 1.0


def test_an_oracle_leaves_the_expert_alone_while_it_may(record: Any) -> None:
    forecaster = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=record.Patient())
    strict = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=oc.Equilibrium(0.1))
    expert, rng = oc.Normal(0.5, 0.1), np.random.default_rng(0)
    away = [0.0, 0.0]
    for _ in range(40):
        y = float(np.clip(rng.normal(0.5, 0.1), 0, 1))
        for i, each in enumerate((forecaster, strict)):
            away[i] = max(away[i], abs(each.predict(expert).quantile(0.5) - 0.5))
            each.update(y)
    assert away[0] < 1e-6 < 0.01 < away[1]


def test_a_space(record: Any, tmp_path: Path) -> None:
    space = record.Podium(("ann", "bob", "cy"))
    check_all(record.wins, space, rounds=40)
    recal = oc.Forecaster(space, record.wins)
    for _ in range(60):
        p = recal.predict({("ann", "bob", "cy"): 0.6, ("bob", "ann", "cy"): 0.4})
        assert p.certificate is not None
        assert p.certificate.holds
        recal.update(worst_outcome(recal)[0])
    assert recal.guarantee.miscalibration <= recal.guarantee.promised
    assert p.probability(("cy", "bob", "ann")) == p.mass[5]
    assert set(p.sample(50, rng=np.random.default_rng(0))) <= set(space.points)
    assert oc.forecasts.FiniteForecast(space, p.mass).mode() == p.mode()
    recal.save(tmp_path / "state")
    again = oc.Forecaster.load(tmp_path / "state", space=space, payoff=record.wins)
    assert again.predict([1 / 6] * 6).mass.tolist() == recal.predict([1 / 6] * 6).mass.tolist()
    with pytest.raises(ValueError, match="space="):
        oc.Forecaster.load(tmp_path / "state", payoff=record.wins)
    rounds = recal.guarantee.rounds
    for wrong in (("ann", "bob"), "ann", ("ann", "bob", "dee")):
        with pytest.raises(ValueError, match=SENTENCE):
            recal.update(wrong)
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            recal.predict({wrong: 1.0})
    assert recal.guarantee.rounds == rounds


def test_an_integration(record: Any) -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed")

    class Narrow:
        def predict(self, times: Any) -> Any:
            return pd.DataFrame({"time": times, "q0.05": 45.0, "q0.5": 50.0, "q0.95": 55.0})

    model, rng = record.RecalibratedModel(Narrow(), low=0), np.random.default_rng(0)
    known = None
    for day in range(60):
        after = model.predict([day], known)
        known = pd.DataFrame({"time": [day], "y": rng.normal(50, 20, 1)})
    assert after["q0.95"].iloc[0] - after["q0.05"].iloc[0] > 30
