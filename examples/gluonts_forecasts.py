"""GluonTS: a predictor whose samples stay calibrated, window after window of a rolling backtest.

    python examples/gluonts_forecasts.py [--quick]

Each midnight the humidity of the next hours is drawn from the week before it (NPTS, a baseline of GluonTS).  The entry
of each window holds the outcomes of earlier forecasts.
"""

import argparse
from collections.abc import Sequence

import numpy as np
import pandas as pd

import orcast as oc
from orcast.integrations.gluonts import RecalibratedPredictor

# after the line above, which keeps the library quiet as it is imported
from gluonts.dataset.pandas import PandasDataset  # isort: skip
from gluonts.dataset.split import split  # isort: skip
from gluonts.model.npts import NPTSPredictor  # isort: skip

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three hours of 100 days, not twelve of 250")
    hours, windows = (3, 100) if parser.parse_args(arguments).quick else (12, 250)

    values = oc.datasets.load("humidity").values[: 24 * (windows + 60)]
    series = pd.DataFrame({"target": values}, index=pd.period_range("2013-01-01", periods=len(values), freq="h"))
    _, template = split(PandasDataset({"JFK": series}), offset=-24 * windows)
    test = template.generate_instances(prediction_length=hours, windows=windows, distance=24, max_history=24 * 28)

    plain = NPTSPredictor(prediction_length=hours, context_length=24 * 7)
    calibrated = RecalibratedPredictor(plain, low=0, high=100)
    outcomes = np.concatenate([label["target"] for label in test.label])

    print(f"{windows} windows of {hours} hours: share of outcomes below each quantile of 100 samples\n")
    print(f"{'':>10}" + "".join(f"{level:>8.0%}" for level in LEVELS) + f"{'pinball loss':>16}")
    for name, predictor in {"NPTS": plain, "orcast": calibrated}.items():
        np.random.seed(0)  # noqa: NPY002 (what NPTS draws with)
        forecasts = list(predictor.predict(test.input, num_samples=100))
        table = np.column_stack([np.concatenate([p.quantile(level) for p in forecasts]) for level in LEVELS])
        shares = (outcomes[:, None] <= table).mean(axis=0)
        loss = oc.metrics.pinball(table, outcomes, LEVELS).mean()
        print(f"{name:>10}" + "".join(f"{share:>8.1%}" for share in shares) + f"{loss:>16.4f}")
    print(f"\n{calibrated.state}: the next window continues from here")


if __name__ == "__main__":
    main()
