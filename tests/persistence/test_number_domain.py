"""Save then load is total: after every accepted call, with numbers of any size and pending rounds."""

import functools
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orcast as oc
from helpers import SENTENCE
from orcast import persistence
from orcast.store.states import Cache
from orcast.stream.session import Session

SIZES = (0.0, 5e-324, 1e-310, 1e-300, 1e-200, 1e-160, 1e-150, 9.9e-101, 1e-100, 1e-99, 1e-50, 1e-12, 0.5, 1.0, 3.0, 1e6,
         1e50, 1e90, 1e99, 9.9e99, 1e100, 1.1e100, 1e150, 1e300, math.inf, math.nan)  # fmt: skip
# Forecasts and bounds that led to a state that could not be loaded, or to a ledger of nan.
KNOWN: list[tuple[Any, Any]] = [
    (oc.Line(), oc.Normal(0, 1e-160)),
    (oc.Line(), oc.Normal(1e-300, 1e-309)),
    (oc.HalfLine(1e-200), {0.1: 0.0, 0.5: 1e-200, 0.9: 1e-160}),
    (oc.HalfLine(1), oc.Normal(0, 1e-18)),
    (oc.HalfLine(high=-1e6), {0.1: -5e-324, 0.5: -1e-12, 0.9: 0.0}),
    (oc.HalfLine(1e100), oc.Normal(0, 1)),
]


class Source:
    """Spaces, forecasts and outcomes with numbers of any size."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def number(self) -> float:
        size = float(self.rng.choice(SIZES)) * float(self.rng.choice([1.0, 1.0, self.rng.uniform(0.5, 2.0)]))
        return float(self.rng.choice([size, -size, self.rng.normal()], p=[0.4, 0.4, 0.2]))

    def numbers(self, count: int) -> list[float]:
        return [self.number() for _ in range(count)]

    def space(self) -> Any:
        makers: list[Any] = [
            lambda: oc.Line(),
            lambda: oc.HalfLine(self.number()),
            lambda: oc.HalfLine(high=self.number()),
            lambda: oc.Interval(*sorted(self.numbers(2))),
            lambda: oc.Binary(),
            lambda: oc.Labels(["a", "b", "c"]),
            lambda: oc.Circle(abs(self.number()), cells=8),
            lambda: oc.Box([sorted(self.numbers(2)), sorted(self.numbers(2))], cells=(2, 3)),
        ]
        return makers[self.rng.integers(len(makers))]()

    def quantity(self) -> Any:
        """A forecast as `predict` takes it, and as a line has it."""
        mean, sd = self.numbers(2)
        values = dict(zip((0.1, 0.5, 0.9), self.numbers(3), strict=True))
        members = self.numbers(4)
        forms = [lambda: (oc.Normal(mean, abs(sd)), {"mean": mean, "sd": abs(sd)}),
                 lambda: (values, {str(level): value for level, value in values.items()}),
                 lambda: (oc.Ensemble(members), {"members": members})]  # fmt: skip
        return forms[self.rng.integers(3)]()

    def round(self, space: Any) -> tuple[Any, Any]:
        """A forecast on a space, and an outcome."""
        if isinstance(space, oc.spaces.OrderedSpace):
            return self.quantity()[0], self.number()
        if isinstance(space, oc.Circle):
            return oc.Normal(self.number(), abs(self.number())), self.number()
        if isinstance(space, oc.Box):
            return [self.quantity()[0], self.quantity()[0]], self.numbers(2)
        k = int(self.rng.integers(space.cells))
        if isinstance(space, oc.Binary):
            return float(self.rng.choice([self.number(), 5e-324, 1.0 - 1e-16, 0.3])), k
        masses = np.abs(self.numbers(3))
        return masses / (masses.sum() if self.rng.random() < 0.8 else 1.0), space.value(k)


def made(act: Any, *given: Any, **options: Any) -> Any:
    """What a call returns; None if it is refused, which must be in a sentence."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return act(*given, **options)
    except (TypeError, ValueError) as reason:
        assert str(reason).startswith("expected "), reason  # noqa: PT017 (most are accepted)
        return None


def check_loads(recal: oc.Recalibrator) -> None:
    assert math.isfinite(recal.guarantee.miscalibration)
    data = persistence.encode(*persistence.state_of(recal))
    twin = persistence.recal_from(*persistence.decode(data), oc.Recalibrator)
    assert persistence.encode(*persistence.state_of(twin)) == data


def run_rounds(recal: oc.Recalibrator, rounds: list[tuple[Any, Any]]) -> None:
    for id, (forecast, y) in enumerate(rounds):
        made(recal.predict, forecast, id=id)
        check_loads(recal)
        if id % 4 != 3 and id in recal.pending:
            made(recal.update, y, id=id)
            check_loads(recal)


@pytest.mark.parametrize(("space", "forecast"), KNOWN)
def test_numbers_that_led_to_unreadable_states(space: Any, forecast: Any) -> None:
    run_rounds(oc.Recalibrator(space, outside="clip"), [(forecast, y) for y in (0.0, 1e-200, 1.0, 5e-324, 1e99)])


@pytest.mark.parametrize("seed", [*range(60), *(pytest.param(s, marks=pytest.mark.slow) for s in range(60, 400))])
def test_a_state_can_be_loaded_after_every_accepted_call(seed: int) -> None:
    source = Source(seed)
    space = None
    while space is None:
        space = made(source.space)
    outside = "clip" if source.rng.random() < 0.3 else "raise"
    rounds = [made(source.round, space) for _ in range(12)]
    run_rounds(oc.Recalibrator(space, outside=outside), [each for each in rounds if each is not None])


@pytest.mark.parametrize("seed", range(4))
def test_a_stream_can_be_loaded_after_every_accepted_line(seed: int, tmp_path: Path) -> None:
    source, kept = Source(seed), Session(tmp_path / "state")
    for id in range(40):
        forecast = made(source.quantity)
        series = {"series": int(source.rng.integers(3))}
        for line in ({"forecast": forecast and forecast[1]}, {"y": source.number()}):
            made(kept.answer, json.dumps({**series, "id": id, **line}).encode())
            kept.store._cache = Cache(1)  # the next line reads back what this one wrote
    kept.close()
    kept = Session(tmp_path / "state")
    for name in range(3):
        kept.answer(json.dumps({"series": name, "id": "last", "forecast": {"mean": 0, "sd": 1}}).encode())
    kept.close()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("form", ["normal", "point", "members"])
def test_a_panel_can_be_loaded_after_every_accepted_frame(form: str, seed: int, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    source = Source(seed)
    for first in (0, 4, 8):
        columns = {"normal": ["mean", "sd"], "point": ["model"], "members": ["member_1", "member_2", "member_3"]}[form]
        forecasts = {name: np.abs(source.numbers(4)) for name in columns}
        y = [*source.numbers(3), math.nan]
        frame = pd.DataFrame({"ds": range(first, first + 4), "y": y, **forecasts})
        made(oc.recalibrate, frame, state=tmp_path / "state", workers=1, model="model" if form == "point" else None)
        if (tmp_path / "state").exists():
            oc.FrameState.load(tmp_path / "state")


UNSAVED = {
    "datetime64": np.datetime64("NaT", "s"),
    "timedelta64": np.timedelta64("NaT"),
    "days": np.timedelta64(3, "D"),
    "digits": 10**5000,
    "deep": functools.reduce(lambda inner, _: [inner], range(10_000), 1),
    "wide": np.longdouble(1),
    "pandas": None,
}


@pytest.mark.parametrize("name", UNSAVED)
def test_features_that_would_block_a_save_are_refused(name: str) -> None:
    value: Any = UNSAVED[name] if name != "pandas" else pytest.importorskip("pandas").NaT
    recal = oc.Recalibrator()
    for x in ({"day": value}, {"days": [value]}, value):
        with pytest.raises(TypeError, match=SENTENCE):
            recal.predict(oc.Normal(0, 1), x=x)
    if name != "deep":
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            recal.predict(oc.Normal(0, 1), id=value)
    assert recal.pending == ()


def test_refusals_do_not_repeat_long_ids() -> None:
    recal, long = oc.Recalibrator(), "x" * 20_000
    recal.predict(oc.Normal(0, 1), id=long)
    calls = [lambda: recal.predict(oc.Normal(0, 1), id=long), lambda: recal.update(1.0, id=long + "y"),
             lambda: recal.drop((long,)), lambda: recal.predict(oc.Normal(0, 1), id=frozenset([long])),
             lambda: recal.predict(oc.Normal(0, 1), x={long: object()})]  # fmt: skip
    for call in calls:
        with pytest.raises((TypeError, ValueError), match=SENTENCE) as refused:
            call()
        assert len(str(refused.value)) < 300
