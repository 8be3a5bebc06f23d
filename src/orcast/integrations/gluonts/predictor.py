"""Any predictor of GluonTS's, recalibrated."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from gluonts.model.predictor import Predictor  # type: ignore[import-untyped]

from orcast.integrations.gluonts.recalibrator import ForecastRecalibrator
from orcast.integrations.gluonts.series import check_new_start, outcomes_of, same_series
from orcast.panel.pools import name_of
from orcast.validation import short


class RecalibratedPredictor(Predictor):  # type: ignore[misc]
    """A predictor around any predictor of GluonTS's, whose forecasts stay calibrated.

    The entries that ``predict`` is given hold the outcomes of earlier forecasts of the same ``item_id``: their rounds
    are settled, then the new forecast is calibrated.  So ask it as time goes by; or, to begin with, for windows of the
    past, in their order:

        _, template = split(dataset, offset=-240)
        list(predictor.predict(template.generate_instances(24, windows=10).input))

    The windows must come after what the predictor was trained on: forecasts of rows that it has seen are of another
    kind than those of the future, and what is learnt from them does not hold there.  A predictor that was trained anew
    makes forecasts of another kind too, until enough of its outcomes are known: begin with a new recalibrator.

    ``recalibrator`` is a :class:`ForecastRecalibrator`, one without bounds if it is left out.  ``serialize`` writes
    both, without pickle.  Entries without ``item_id`` are windows of one series.

    >>> import numpy as np, pandas as pd
    >>> from gluonts.model.seasonal_naive import SeasonalNaivePredictor
    >>> naive = SeasonalNaivePredictor(prediction_length=2, season_length=7)
    >>> predictor = RecalibratedPredictor(naive, ForecastRecalibrator(low=0, quantiles=[0.1, 0.5, 0.9]))
    >>> y = np.random.default_rng(0).normal(50, 10, 60)
    >>> for days in range(30, 60):
    ...     entry = {"item_id": "north", "start": pd.Period("2026-01-01", "D"), "target": y[:days]}
    ...     (p,) = predictor.predict([entry])
    >>> p.forecast_array.shape, predictor.recalibrator.guarantee("north").rounds
    ((3, 2), 29)
    """

    def __init__(self, predictor: Any, recalibrator: ForecastRecalibrator | None = None) -> None:
        if not isinstance(predictor, Predictor):
            raise TypeError(f"expected a predictor of GluonTS's, got {short(predictor)}")
        if recalibrator is not None and not isinstance(recalibrator, ForecastRecalibrator):
            raise TypeError(f"expected a ForecastRecalibrator, got {short(recalibrator)}")
        super().__init__(predictor.prediction_length, predictor.lead_time)
        self.predictor = predictor
        self.recalibrator = ForecastRecalibrator(lead_time=self.lead_time) if recalibrator is None else recalibrator
        if self.recalibrator.lead_time != self.lead_time:
            raise ValueError(
                f"expected a recalibrator with lead_time={self.lead_time}, as the predictor has it, "
                f"got lead_time={self.recalibrator.lead_time}"
            )

    def predict(self, dataset: Any, **kwargs: Any) -> Iterator[Any]:
        """Calibrated forecasts, in the order of the dataset; all are made first, and played in the order of time."""
        if iter(dataset) is dataset:
            dataset = list(dataset)
        recal, asked = self.recalibrator, []
        starts: dict[Any, set[Any]] = {}
        nameless: Any = None
        for entry, forecast in zip(dataset, self.predictor.predict(dataset, **kwargs), strict=True):
            seen = starts.setdefault(forecast.item_id, set())
            check_new_start(forecast.item_id, forecast.start_date, seen)
            seen.add(forecast.start_date)
            known = outcomes_of(entry, forecast.start_date.freqstr)
            if forecast.item_id is None:
                same_series(known, known if nameless is None else nameless)
                nameless = known
            asked.append((forecast, known))
        # in the order of time: what is known of all items comes before their forecasts
        answers: list[Any] = [None] * len(asked)
        order = sorted(range(len(asked)), key=lambda i: (asked[i][0].start_date, name_of(asked[i][0].item_id)))
        for _, group in groupby(order, key=lambda i: asked[i][0].start_date):
            together = list(group)
            for forecast, known in (asked[i] for i in together):
                if forecast.item_id in recal:
                    recal.settle(forecast.item_id, *known)
            for i in together:
                answers[i] = recal.predict(asked[i][0])
        yield from answers

    def serialize(self, path: Path) -> None:
        """Write predictor and recalibrator into a folder."""
        super().serialize(path)
        (path / "predictor").mkdir(exist_ok=True)
        self.predictor.serialize(path / "predictor")
        self.recalibrator.save(path / "recalibrator.orcast")

    @classmethod
    def deserialize(cls, path: Path, **kwargs: Any) -> RecalibratedPredictor:
        """Read both again."""
        predictor = Predictor.deserialize(path / "predictor", **kwargs)
        return cls(predictor, ForecastRecalibrator.load(path / "recalibrator.orcast"))
