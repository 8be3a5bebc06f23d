"""Correction by the groups of a payoff."""

import numpy as np

import orcast as oc


def test_groups_correct_a_spread_that_is_wrong_by_group() -> None:
    rng = np.random.default_rng(5)
    hour = np.arange(1200) % 24
    day = (hour >= 8) & (hour < 20)
    y = 50.0 + np.where(day, 8.0, 2.0) * rng.normal(size=hour.size)
    losses = {}
    for name, context in {"by hour": oc.by("hour", values=range(24)), "plain": None}.items():
        recal = oc.Recalibrator(oc.Interval(0, 100), oc.QuantileCalibration(context=context))
        x = [{"hour": int(h)} for h in hour] if context is not None else None
        q = recal.run([oc.Normal(50.0, 5.5)] * hour.size, y, x=x)
        losses[name] = oc.metrics.pinball(q[600:], y[600:]).mean()
    assert losses["by hour"] < 0.98 * losses["plain"]


def test_groups_that_do_not_matter_cost_little() -> None:
    lost = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        mean = rng.normal(50.0, 5.0, 600)
        y = mean + rng.normal(size=mean.size)
        experts, x = [oc.Normal(m, 1.0) for m in mean], [{"hour": t % 6} for t in range(mean.size)]
        context = oc.by("hour", values=range(6))
        loss = [
            oc.metrics.pinball(oc.Recalibrator(oc.Interval(0, 100), payoff).run(experts, y, x=given), y).mean()
            for payoff, given in (
                (oc.QuantileCalibration(context=context), x),
                (oc.QuantileCalibration(), None),
            )
        ]
        lost.append(loss[0] / loss[1])
    assert np.mean(lost) < 1.01
