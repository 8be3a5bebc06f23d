"""Nixtla: day-ahead intervals of a statsforecast model, and the same intervals after recalibration.

    python examples/nixtla_frame.py [--quick]

Each midnight a model is fitted to the humidity of the weeks before and forecasts the next hours, as cross_validation
has it.  A window is corrected by those before it whose outcomes were known.  Then tomorrow is forecast for real.
"""

import argparse
import warnings
from collections.abc import Sequence

import pandas as pd
from statsforecast import StatsForecast
from statsforecast.models import Naive

from orcast import datasets
from orcast.integrations.nixtla import recalibrate

LEVEL = [80, 95]
LEARNING = 14  # windows that are not counted


def shares(cv: pd.DataFrame) -> pd.DataFrame:
    """Share of outcomes within each interval, and the mean width of its possible part."""
    rows = {}
    for level in LEVEL:
        low, high = (cv[f"Naive-{end}-{level}"].clip(0, 100) for end in ("lo", "hi"))
        rows[f"{level}%"] = {"covered": cv["y"].between(low, high).mean(), "width": (high - low).mean()}
    return pd.DataFrame(rows).T


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three-hour windows instead of twelve")
    hours, windows = (3 if parser.parse_args(arguments).quick else 12), 120

    values = datasets.load("humidity").values[: 24 * (windows + 30)]
    ds = pd.date_range("2013-01-01", periods=len(values), freq="h")
    df = pd.DataFrame({"unique_id": "JFK", "ds": ds, "y": values})
    sf = StatsForecast([Naive()], freq="h")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cv = sf.cross_validation(df=df, h=hours, n_windows=windows, step_size=24, input_size=24 * 21, level=LEVEL)
        tomorrow = sf.forecast(df=df.tail(24 * 21), h=hours, level=LEVEL)

    after = recalibrate(cv, low=0, high=100)
    counted = cv["cutoff"] > cv["cutoff"].unique()[LEARNING - 1]
    table = pd.concat({"base": shares(cv[counted]), "recalibrated": shares(after[counted])}, axis=1)
    print(f"{windows - LEARNING} windows of {hours} hours: share of outcomes within each interval, and its width\n")
    print(table.to_string(float_format=lambda value: f"{value:.3f}" if value < 1 else f"{value:.1f}"))
    print("\nThe next hours, recalibrated\n")
    print(recalibrate(tomorrow, cv, low=0, high=100).head(3).to_string(index=False, float_format="%.1f"))


if __name__ == "__main__":
    main()
