"""Draw the picture of the README and the home page: `python docs/demo_picture.py`."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import orcast as oc
from orcast.evaluate import Evaluation
from orcast.evaluate.calibration import reliability as reliability_of

ROUNDS, LEVELS = 1000, oc.metrics.LEVELS
TITLE, SHOWN = "Relative humidity at JFK airport, hourly, 2013", 150
BASE, OURS = "#d55e00", "#0072b2"


def evaluation_of(expert: str) -> Evaluation:
    """Recalibrate the first forecasts of an expert, evaluated at 99 levels."""
    stream = oc.datasets.stream(oc.datasets.load("humidity"), expert)
    forecasts = [oc.Normal(*each) for each in zip(stream.mu[:ROUNDS], stream.sd[:ROUNDS], strict=True)]
    recal, y = oc.Recalibrator(oc.Interval(stream.low, stream.high)), stream.y[:ROUNDS]
    result = recal.run(forecasts, y, at=LEVELS, detailed=True)
    certificate = {"promised": result.promised, "miscalibration": result.miscalibration}
    before = stream.quantile(LEVELS)[:ROUNDS]
    return Evaluation.of(before, y, after=result.rows, levels=LEVELS, timed=True, **certificate)


def main() -> None:
    """Write docs/images/demo.png."""
    evaluation = evaluation_of("naive")
    assert evaluation.after is not None
    assert evaluation.promised is not None
    assert evaluation.miscalibration is not None
    before, after, y, rounds = evaluation.before, evaluation.after, evaluation.y, np.arange(1, evaluation.rows + 1)
    shares = [np.mean((q[:, 4] <= y) & (y <= q[:, 94])) for q in (before, after)]
    widths = [np.mean(q[:, 94] - q[:, 4]) for q in (before, after)]

    figure = plt.figure(figsize=(10.0, 7.2), layout="constrained")
    axes = figure.subplot_mosaic("AA;BC")
    fan, reliability, bound = (axes[name] for name in "ABC")
    last, last_y = rounds[-SHOWN:], y[-SHOWN:]
    for low, high, alpha in ((4, 94, 0.2), (24, 74, 0.4)):
        ends = after[-SHOWN:, low], after[-SHOWN:, high]
        fan.fill_between(last, *ends, color=OURS, alpha=alpha, lw=0, label=f"{high - low}% interval, recalibrated")
    fan.plot(last, after[-SHOWN:, 49], color=OURS, label="median, recalibrated")
    fan.plot(last, before[-SHOWN:, [4, 94]], color=BASE, ls="--", lw=1.2, label=["90% interval, base forecast", None])
    fan.plot(last, last_y, ".", color="black", ms=4, label="outcome")
    covered = f"the 90% interval covers {shares[0]:.0%} before, {shares[1]:.0%} after"
    title = f"{TITLE}: {covered}, with {widths[1] / widths[0]:.0%} of the width"
    fan.set_title(title, loc="left", fontsize=11)
    fan.set(xlabel="round", ylabel="%", xlim=(last[0], last[-1]))
    figure.legend(*fan.get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False, fontsize=9)

    for side, color, name in (("before", BASE, "base forecast"), ("after", OURS, "recalibrated")):
        found = reliability_of(evaluation, side)
        style = "--" if side == "before" else "-"
        reliability.plot(found.nominal, found.observed, color=color, lw=2, ls=style, label=name)
    reliability.fill_between(found.nominal, found.low, found.high, color="0.85", zorder=0, label="chance band")
    reliability.set_title("Reliability", loc="left", fontsize=11)
    reliability.set(xlabel="level of the quantile", ylabel="outcomes below it", xlim=(0, 1), ylim=(0, 1))
    reliability.legend(frameon=False)

    bound.loglog(rounds, evaluation.promised, color="black", ls="--", label="bound")
    bound.loglog(rounds, evaluation.miscalibration, color=OURS, label="miscalibration")
    bound.set_title("Miscalibration after recalibration, and its bound", loc="left", fontsize=11)
    bound.set(xlabel="rounds")
    bound.legend(frameon=False)
    for each in (fan, reliability, bound):
        each.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).parent / "images" / "demo.png", dpi=150)


if __name__ == "__main__":
    main()
