"""What was learnt of an expert before the guarantee has its say."""

import numpy as np
import pytest

import orcast as oc

LEVELS = np.arange(1, 20) / 20


def result(recal: oc.Recalibrator, rounds: int = 60, shift: float = 0.08) -> oc.Recalibrator:
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        mean = rng.uniform(0.3, 0.7)
        recal.predict(oc.Normal(mean, 0.05))
        recal.update(float(np.clip(mean + shift + 0.1 * rng.standard_normal(), 0.0, 1.0)))
    return recal


def test_before_any_outcome_it_is_the_expert() -> None:
    recal = oc.Recalibrator(oc.Interval(0, 1))
    q = recal.corrected(oc.Normal(0.5, 0.05)).quantile(LEVELS)
    np.testing.assert_allclose(q, oc.Normal(0.5, 0.05).quantile(LEVELS), atol=0.003)
    assert float(oc.Recalibrator(oc.Binary()).corrected(0.3)) == pytest.approx(0.3, abs=0.01)


def test_corrected_forecast_is_the_limit_of_high_temperatures() -> None:
    # the last layer tilts its prior by the cumulative payoff over the temperature
    recal = result(oc.Recalibrator(oc.Interval(0, 1), oracle=oc.Committee(temperature=1e9)))
    given = oc.Normal(0.5, 0.05)
    corrected, gentle = recal.corrected(given), recal.predict(given)
    assert gentle.certificate.holds
    np.testing.assert_allclose(corrected.quantile(LEVELS), gentle.quantile(LEVELS), atol=1e-5)
    usual = result(oc.Recalibrator(oc.Interval(0, 1)))
    assert np.abs(usual.corrected(given).quantile(LEVELS) - usual.predict(given).quantile(LEVELS)).max() > 1e-4


@pytest.mark.parametrize("space", [oc.Interval(0, 1), oc.Line(), oc.HalfLine(0)], ids=repr)
def test_looking_changes_nothing(space: oc.Interval) -> None:
    looked, other = result(oc.Recalibrator(space)), result(oc.Recalibrator(space))
    looked.corrected(oc.Normal(0.1, 3.0))
    assert looked.pending == ()
    assert looked.experts == other.experts
    p, q = (forecaster.predict(oc.Normal(0.5, 0.1)) for forecaster in (looked, other))
    assert (p.quantile(LEVELS) == q.quantile(LEVELS)).all()


def test_several_experts_contexts_and_pools() -> None:
    experts = {"low": oc.Normal(0.3, 0.05), "right": oc.Normal(0.6, 0.05)}
    payoff = oc.QuantileCalibration(context=oc.by("day", values="MT"))
    recal = oc.Recalibrator(oc.Interval(0, 1), payoff, pool=None)
    for _ in range(40):
        recal.predict(experts=experts, x={"day": "M"})
        recal.update(0.6)
    assert recal.corrected(experts=experts, x={"day": "T"}).median() == pytest.approx(0.6, abs=0.02)
    pool = oc.Pool()
    forecasters = [oc.Recalibrator(oc.Interval(0, 1), pool=pool) for _ in range(3)]
    for _ in range(30):
        for forecaster in forecasters[:2]:
            forecaster.predict(oc.Normal(0.4, 0.05))
            forecaster.update(0.6)
    # a new one knows the outcomes of the others
    assert forecasters[2].corrected(oc.Normal(0.4, 0.05)).median() > 0.41


def test_corrected_rejects_other_spaces_and_no_forecast() -> None:
    with pytest.raises(TypeError, match="expected a quantity, or an event with its default payoffs, got Circle"):
        oc.Recalibrator(oc.Circle(360)).corrected((10.0, 5.0))
    with pytest.raises(TypeError, match="expected a forecast, got None"):
        oc.Recalibrator().corrected()
