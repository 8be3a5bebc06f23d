"""darts: recalibrated quantiles day by day, from a kept state instead of a recomputed calibration set.

    python examples/darts_daily.py [--quick]

The first call has the windows of historical_forecasts, each later one the forecasts of a day and the outcomes since.
"""

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
from darts import TimeSeries
from darts.models import LinearRegressionModel

import orcast as oc

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
HOURS = 6


def rows(windows: Iterable[Any]) -> pd.DataFrame:
    """Frame of windows of forecasts, each issued one step before it starts."""
    frames = [each.to_dataframe(time_as_index=False).assign(cutoff=each.start_time() - each.freq) for each in windows]
    return pd.concat(frames, ignore_index=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20 days instead of 120")
    days, begin = (20 if parser.parse_args(arguments).quick else 120), 24 * 90
    y = oc.datasets.load("humidity").values[: begin + 24 * (days + 1)]
    times = pd.date_range("2013-01-01", periods=len(y), freq="h")
    outcomes = pd.DataFrame({"time": times, "y": y})
    series = TimeSeries.from_times_and_values(times, y, columns=["JFK"])
    model = LinearRegressionModel(lags=24, output_chunk_length=HOURS, likelihood="quantile", quantiles=LEVELS)
    model.fit(series[: 24 * 30])
    likely: dict[str, Any] = {"predict_likelihood_parameters": True}  # quantiles instead of samples
    windows: dict[str, Any] = {"start": 24 * 30, "stride": 24, "retrain": False, "last_points_only": False}
    past = model.historical_forecasts(series[:begin], forecast_horizon=HOURS, **windows, **likely)
    state, issued = oc.FrameState(), []  # or the path of a file
    oc.recalibrate(rows(past), target=outcomes[:begin], low=0, high=100, state=state)
    for now in range(begin, begin + 24 * days, 24):
        today = rows([model.predict(HOURS, series=series[:now], **likely)])
        issued.append(oc.recalibrate(today, target=outcomes[now - 24 : now], low=0, high=100, state=state))
    print(f"{days} days, {HOURS} hours each: share of outcomes below each quantile, and pinball loss\n")
    table = pd.concat(issued).drop(columns="y").merge(outcomes)
    for name, base in {"darts": "JFK", "orcast": "JFK_orcast"}.items():
        quantiles = table[[f"{base}_q{level:.3f}" for level in LEVELS]]
        shares = quantiles.ge(table["y"], axis=0).mean()
        loss = oc.metrics.pinball(quantiles.to_numpy(), table["y"].to_numpy(), LEVELS).mean()
        print(f"{name:>8}" + "".join(f"{share:>8.1%}" for share in shares) + f"{loss:>10.3f}")
    last = TimeSeries.from_dataframe(issued[-1], "time", quantiles.columns.tolist())
    print(f"\nThe last day: {last.n_components} quantiles of {last.n_timesteps} hours as a series of darts")


if __name__ == "__main__":
    main()
