"""Nixtla: day-ahead intervals of a statsforecast model, and what the same intervals hold once they are calibrated.

    python examples/nixtla_frame.py [--quick]

Each midnight a model is fitted to the humidity of the weeks before and forecasts the next hours, as cross_validation
has it.  A window is corrected by those before it whose outcomes were known.  Then tomorrow is forecast for real.
"""

import argparse
import warnings
from collections.abc import Sequence

import pandas as pd
from statsforecast import StatsForecast
from statsforecast.models import AutoARIMA, Naive, SeasonalNaive

from orcast import datasets
from orcast.integrations.nixtla import recalibrate

LEVEL = [80, 95]
LEARNING = 14  # windows that are not counted


def shares(cv: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Share of outcomes within each interval, and the mean width of its possible part."""
    rows = {}
    for model in models:
        for level in LEVEL:
            low, high = (cv[f"{model}-{end}-{level}"].clip(0, 100) for end in ("lo", "hi"))
            rows[model, f"{level}%"] = {"held": cv["y"].between(low, high).mean(), "width": (high - low).mean()}
    return pd.DataFrame(rows).T


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three-hour windows, without ARIMA")
    quick = parser.parse_args(arguments).quick
    hours, windows = (3, 120) if quick else (12, 120)

    values = datasets.load("humidity").values[: 24 * (windows + 30)]
    df = pd.DataFrame(
        {"unique_id": "JFK", "ds": pd.date_range("2013-01-01", periods=len(values), freq="h"), "y": values}
    )
    models = [SeasonalNaive(24), Naive() if quick else AutoARIMA(max_p=2, max_q=2, seasonal=False)]
    sf = StatsForecast(models, freq="h")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cv = sf.cross_validation(df=df, h=hours, n_windows=windows, step_size=24, input_size=24 * 21, level=LEVEL)
        tomorrow = sf.forecast(df=df.tail(24 * 21), h=hours, level=LEVEL)

    after = recalibrate(cv, low=0, high=100)
    counted = cv["cutoff"] > cv["cutoff"].unique()[LEARNING - 1]
    names = [str(model) for model in models]
    table = pd.concat({"as forecast": shares(cv[counted], names), "calibrated": shares(after[counted], names)}, axis=1)
    print(f"{windows - LEARNING} windows of {hours} hours: share of outcomes within each interval, and its width\n")
    print(table.to_string(float_format=lambda value: f"{value:.3f}" if value < 1 else f"{value:.1f}"))

    calibrated = recalibrate(tomorrow, cv, low=0, high=100)
    ends = [f"{names[-1]}-{end}-80" for end in ("lo", "hi")]
    print(f"\nThe next hours, {names[-1]}, 80%, as forecast and calibrated\n")
    both = tomorrow[["ds", *ends]].merge(calibrated[["ds", *ends]], on="ds", suffixes=("", " calibrated"))
    print(both.head(6).to_string(index=False, float_format="%.1f"))


if __name__ == "__main__":
    main()
