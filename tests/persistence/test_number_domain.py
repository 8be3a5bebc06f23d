"""Every number that is accepted leads to a state that can be saved and loaded."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orcast as oc
from helpers import SENTENCE
from orcast.stream.durable_session import DurableSession

FORECASTS: dict[str, Any] = {
    "small sd": oc.Normal(0, 1e-160),
    "smaller sd": oc.Normal(0, 1e-300),
    "subnormal": oc.Normal(1e-300, 1e-309),
    "quantiles": {0.1: 0.0, 0.5: 1e-200, 0.9: 1e-160},
    "members": oc.Ensemble([0.0, 1e-170, 1e-160]),
    "large": oc.Normal(1e99, 1e98),
}
OUTCOMES: dict[str, list[float]] = {
    "zero and one": [0.0, 1.0, 0.0],
    "tiny": [0.0, 1e-200, 5e-324],
    "mixed": [1e-160, 1e99, 1e-160],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("space", [oc.Line(), oc.HalfLine(0), oc.HalfLine(1e-200), oc.Interval(0, 1e99)], ids=repr)
@pytest.mark.parametrize("outcomes", OUTCOMES)
@pytest.mark.parametrize("name", FORECASTS)
def test_a_saved_state_can_be_loaded(name: str, outcomes: str, space: Any, tmp_path: Path) -> None:
    game = oc.Recalibrator(space)
    for y in OUTCOMES[outcomes]:
        game.predict(FORECASTS[name])
        game.update(y)
    game.predict(FORECASTS[name], id="late")
    game.save(tmp_path / "state")
    twin = oc.Recalibrator.load(tmp_path / "state")
    assert twin.guarantee == game.guarantee
    assert math.isfinite(twin.guarantee.miscalibration)


def test_a_tiny_spread_leaves_a_stream_readable(tmp_path: Path) -> None:
    session = DurableSession(tmp_path / "state")
    for id, y in enumerate((0.0, 1e-200, 1.0)):
        session.answer(json.dumps({"series": "a", "id": id, "forecast": {"mean": 0, "sd": 1e-160}}).encode())
        session.answer(json.dumps({"series": "a", "id": id, "y": y}).encode())
    session.close()
    session = DurableSession(tmp_path / "state")
    session.answer(b'{"series": "a", "id": 9, "forecast": {"mean": 0, "sd": 1}}')
    session.close()


@pytest.mark.parametrize("form", ["normal", "point", "members"])
def test_a_tiny_spread_leaves_a_panel_readable(form: str, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    forms = {"normal": {"mean": 0.0, "sd": 1e-160}, "point": {"model": 1e-200},
             "members": {"member_1": 0.0, "member_2": 1e-170, "member_3": 1e-160}}  # fmt: skip
    for first in (0, 4):
        frame = pd.DataFrame({"ds": range(first, first + 4), "y": [0.0, 1e-200, 1e-160, np.nan], **forms[form]})
        after = oc.recalibrate(
            frame, state=tmp_path / "state", workers=1, **({"model": "model"} if form == "point" else {})
        )
        assert len(after) == 4


@pytest.mark.parametrize("value", [np.datetime64("NaT", "s"), "pandas"], ids=["numpy", "pandas"])
def test_features_without_a_time_are_refused(value: Any) -> None:
    if value == "pandas":
        value = pytest.importorskip("pandas").NaT
    game = oc.Recalibrator()
    with pytest.raises(TypeError, match=SENTENCE):
        game.predict(oc.Normal(0, 1), x={"day": value})
    assert game.pending == ()
