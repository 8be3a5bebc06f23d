"""A payoff of your own: probabilities of ramps that are right at low, middle and high wind.

    python examples/own_payoff.py [--quick] [--out FOLDER]

A ramp is an hour in which the power of a wind farm moves by more than 800 kW.  Whoever keeps a reserve wants to know
how probable it is, up and down, and wants that to be right at each level of wind.  It takes four lines to say so.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import orcast as oc

RAMP = 800.0
LEVELS = {"below 600 kW": 600.0, "600 to 1,500 kW": 1500.0, "above 1,500 kW": np.inf}
FIRST = 224  # hours before the first forecast


def ramps(y: np.ndarray, x: dict) -> list:
    """What should agree between forecasts and outcomes: whether it is a ramp up, and whether it is one down."""
    return [y > x["now"] + RAMP, y < x["now"] - RAMP]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="800 hours instead of 3,000")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="for the picture (default: here)")
    options = parser.parse_args(arguments)

    series = oc.datasets.load("wind")  # hourly, comes with the package
    stream = oc.datasets.stream(series, "rls")
    hours = 800 if options.quick else 3000
    now, y = series.values[FIRST - 1 :][:hours], stream.y[:hours]
    level = np.searchsorted(list(LEVELS.values()), now)

    # ramps(y) minus what the forecast expects of it, at each level of wind by itself; its squared norm is at most 2
    right_ramps = oc.Recipe(witness=ramps, context=oc.by("level", values=range(len(LEVELS))), bound=2.0)
    space = oc.Interval(series.low, series.high)
    oc.check_payoff(right_ramps, space, x={"now": 2000.0, "level": 2})  # says what is wrong with it, if anything
    default = oc.QuantileCalibration() + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS())
    said = {"as given": np.empty((hours, 2)), "default": np.empty((hours, 2)), "own payoff": np.empty((hours, 2))}
    said["as given"][:, 0] = norm.sf(now + RAMP, stream.mu[:hours], stream.sd[:hours])
    said["as given"][:, 1] = norm.cdf(now - RAMP, stream.mu[:hours], stream.sd[:hours])
    for name, payoff in {"default": default, "own payoff": default + right_ramps}.items():
        recal = oc.Recalibrator(space, payoff)
        for t in range(hours):
            x = {"now": now[t], "level": int(level[t])} if name == "own payoff" else None  # the default looks at none
            p = recal.predict(oc.Normal(stream.mu[t], stream.sd[t]), x=x)
            said[name][t] = 1 - p.cdf(now[t] + RAMP), p.cdf(now[t] - RAMP)
            recal.update(y[t])

    happened = np.column_stack([y > now + RAMP, y < now - RAMP])
    groups = [level == k for k in range(len(LEVELS))]
    means = {}
    for name, each in {"it came": happened, **said}.items():
        means[name] = np.array([each[group].mean(axis=0) for group in groups]).T
    print(f"Ramps of more than {RAMP:.0f} kW in an hour, {hours:,} hours: how often they came, and what was said\n")
    for direction, title in enumerate(["up", "down"]):
        print(f"{title:>12}" + "".join(f"{name:>20}" for name in LEVELS))
        for name, each in means.items():
            print(f"{name:>12}" + "".join(f"{share:>20.1%}" for share in each[direction]))
        print()

    figure, panels = plt.subplots(1, 2, figsize=(9.5, 4.5), layout="constrained", sharey=True)
    looks = {"it came": "0.15", "as given": "#D55E00", "default": "#56B4E9", "own payoff": "#0072B2"}
    for direction, (axes, title) in enumerate(zip(panels, ["up", "down"], strict=True)):
        for k, (name, color) in enumerate(looks.items()):
            axes.bar(np.arange(len(LEVELS)) + 0.2 * (k - 1.5), means[name][direction], 0.18, color=color, label=name)
        axes.set_title(f"Ramps {title}", loc="left")
        axes.set_xticks(range(len(LEVELS)), LEVELS)
        axes.set_xlabel("power an hour before")
        axes.yaxis.set_major_formatter("{x:.1%}")
    panels[0].set_ylabel("how often, and how probable they were said to be")
    panels[0].legend(frameon=False)
    figure.savefig(options.out / "own_payoff.png", dpi=150)
    plt.close(figure)
    weights = [group.mean() for group in groups]
    gaps = {name: np.average(np.abs(means[name] - means["it came"]), axis=1, weights=weights).mean() for name in said}
    print(f"picture: {options.out / 'own_payoff.png'}")
    print("off by " + ", ".join(f"{gap:.1%} ({name})" for name, gap in gaps.items()))


if __name__ == "__main__":
    main()
