"""Small runs of every part of the library, by public names and generated numbers only.

A case is a function that returns arrays, numbers or texts by name.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import orcast as oc

Answers = dict[str, Any]
LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
LABELS = ["home", "draw", "away"]


@dataclass(frozen=True)
class Case:
    """A function that runs the library, the libraries that it needs, and the tolerance of its answers."""

    function: Callable[[], Answers]
    needs: tuple[str, ...] = ()
    tolerance: float = 1e-9

    def run(self) -> Answers:
        """Run it; warnings are no part of the answers."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.function()


CASES: dict[str, Case] = {}


def case(*needs: str, tolerance: float = 1e-9) -> Callable[[Callable[[], Answers]], Callable[[], Answers]]:
    """Register a case under the name of its function."""

    def register(function: Callable[[], Answers]) -> Callable[[], Answers]:
        CASES[function.__name__] = Case(function, needs, tolerance)
        return function

    return register


class Log:
    """Collects numbers by name, one entry a round."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Any]] = {}

    def add(self, **values: Any) -> None:
        """Append a value to each name."""
        for name, value in values.items():
            self.rows.setdefault(name, []).append(value)

    def forecast(self, p: Any) -> Any:
        """Append a forecast and its certificate; returns the forecast."""
        if isinstance(p, oc.Forecast):
            self.add(mean=p.mean(), std=p.std(), quantiles=p.quantile(LEVELS), cdf=p.cdf(50.0))
        elif hasattr(p, "probability") and not isinstance(p.probability, dict) and np.size(p.mass) == 2:
            self.add(probability=p.probability())
        else:
            self.add(mass=np.asarray(p.mass).ravel())
        self.add(holds=p.certificate.holds, promised=p.certificate.promised, worst_next=p.certificate.worst_next)
        return p

    def answers(self, forecaster: Any = None) -> Answers:
        """Stack what was collected, with the guarantee of a game."""
        found: Answers = {name: np.array(rows) for name, rows in self.rows.items()}
        return found if forecaster is None else found | guarantee(forecaster.guarantee)


def guarantee(g: Any) -> Answers:
    """Numbers of a guarantee, its parts and groups included."""
    found = {"guarantee": [g.miscalibration, g.promised, g.held], "guarantee rounds": g.rounds}
    if g.parts:
        found["guarantee parts"] = [float(value) for _, value in sorted(g.parts.items())]
    groups = [each for _, labels in sorted(g.groups.items()) for _, each in sorted(labels.items(), key=repr)]
    if groups:
        found["guarantee groups"] = [[each.rounds, each.miscalibration, each.promised] for each in groups]
    return found


def numbers(rounds: int, seed: int, low: float = 0.0, high: float = 100.0) -> list[tuple[Any, float]]:
    """Forecasts in every form, too narrow and biased, with their outcomes."""
    rng = np.random.default_rng(seed)
    pairs = []
    for t in range(rounds):
        centre, spread = 50.0 + 15.0 * np.sin(t / 9.0) + rng.normal(0.0, 4.0), 4.0 + t % 3
        forms: list[Any] = [
            oc.Normal(centre, spread),
            {0.1: centre - 1.3 * spread, 0.5: centre, 0.9: centre + 1.5 * spread},
            oc.Ensemble(rng.normal(centre, spread, 7)),
            oc.Normal(centre, spread),
        ]
        y = float(np.clip(centre + 4.0 + 9.0 * rng.standard_normal(), low, high))
        pairs.append((forms[t % len(forms)], y))
    return pairs


def loop(
    forecaster: Any, pairs: Iterable[tuple[Any, Any]], x: Callable[[int], Any] | None = None, **names: Any
) -> Answers:
    """Predict and update round by round."""
    log = Log()
    for t, (forecast, y) in enumerate(pairs):
        features = {} if x is None else {"x": x(t)}
        log.forecast(forecaster.predict(forecast, **features, **names))
        forecaster.update(y)
    return log.answers(forecaster if hasattr(forecaster, "guarantee") else None)


def events(rounds: int, seed: int) -> list[tuple[float, int]]:
    """Probabilities that are too confident, with their outcomes."""
    rng = np.random.default_rng(seed)
    p = 0.5 + 0.45 * np.sin(np.arange(rounds) / 2.0) * rng.uniform(0.7, 1.0, rounds)
    return [(float(each), int(rng.random() < 0.3 + 0.4 * each)) for each in p]


def matches(rounds: int, seed: int) -> list[tuple[Any, str]]:
    """Probabilities of three labels, with their outcomes."""
    rng = np.random.default_rng(seed)
    pairs: list[tuple[Any, str]] = []
    for t in range(rounds):
        weights = rng.dirichlet([2.0, 1.0, 1.5])
        y = LABELS[int(rng.choice(3, p=0.5 * weights + 0.5 * np.array([0.2, 0.5, 0.3])))]
        pairs.append((dict(zip(LABELS, weights.tolist(), strict=True)) if t % 2 else weights.tolist(), y))
    return pairs


# --- recalibrators and forecasters


@case()
def interval_loop() -> Answers:
    return loop(oc.Recalibrator(oc.Interval(0, 100)), numbers(200, 1))


@case()
def half_line_loop() -> Answers:
    return loop(oc.Recalibrator(oc.HalfLine(0)), numbers(100, 2, high=np.inf))


@case()
def line_loop() -> Answers:
    return loop(oc.Recalibrator(), numbers(100, 3, -np.inf, np.inf))


@case()
def batch_run() -> Answers:
    recal = oc.Recalibrator(oc.Interval(0, 100))
    forecasts, outcomes = zip(*numbers(150, 4), strict=True)
    result = recal.run(list(forecasts), list(outcomes), at=LEVELS, detailed=True)
    rng = np.random.default_rng(5)
    rows = np.sort(rng.normal(50.0, 8.0, (60, 3)), axis=1)
    more = recal.run(rows, rng.uniform(20.0, 90.0, 60), levels=[0.1, 0.5, 0.9])
    columns = ("rows", "mean", "sd", "holds", "promised", "miscalibration")
    return {name: getattr(result, name) for name in columns} | {"more": more} | guarantee(recal.guarantee)


@case()
def late_outcomes() -> Answers:
    """Outcomes come 1 to 5 rounds late, out of order; every seventh never comes. The state is saved in between."""
    recal, log = oc.Recalibrator(oc.Interval(0, 100)), Log()
    rng, due = np.random.default_rng(6), dict[int, list[tuple[int, float]]]()
    with tempfile.TemporaryDirectory() as folder:
        for t, (forecast, y) in enumerate(numbers(120, 7)):
            log.forecast(recal.predict(forecast, id=t))
            due.setdefault(t + int(rng.integers(0, 5)), []).append((t, y))
            for id, outcome in reversed(due.pop(t, [])):
                if id % 7 == 3:
                    recal.drop(id)
                else:
                    recal.update(outcome, id=id)
            if t == 60:
                recal.save(Path(folder) / "state.orcast")
                recal = oc.Recalibrator.load(Path(folder) / "state.orcast")
    return log.answers(recal) | {"pending": list(recal.pending)}


@case()
def several_experts() -> Answers:
    """Three experts, one of which is missing in every third round."""
    recal, log = oc.Recalibrator(oc.Interval(0, 100)), Log()
    for t, ((tree, y), (net, _), (flat, _)) in enumerate(
        zip(numbers(100, 8), numbers(100, 9), numbers(100, 10), strict=True)
    ):
        experts = {"tree": tree, "net": net, "flat": flat}
        if t % 3 == 1:
            del experts["net"]
        log.forecast(recal.predict(experts=experts))
        recal.update(y)
    return log.answers(recal)


@case()
def groups() -> Answers:
    context = oc.by("hour", values=range(4))
    payoff = oc.QuantileCalibration(LEVELS, context=context) + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS())
    soft = oc.QuantileCalibration([0.5], context=oc.by("wind", edges=[5, 10], soft=2.0) * oc.by_last_error())
    return loop(
        oc.Recalibrator(oc.Interval(0, 100), payoff + soft),
        numbers(100, 11),
        x=lambda t: {"hour": t % 4, "wind": (t * 3.7) % 15.0},
    )


@case()
def payoffs() -> Answers:
    payoff = (
        oc.QuantileCalibration(LEVELS)
        + oc.IntervalCalibration([0.5, 0.9])
        + oc.MomentMatching(3)
        + oc.payoffs.ThresholdCalibration([20, 60], grid=1)
        + oc.NoRegret(oc.CRPS(), oc.MSE())
    )
    return loop(oc.Recalibrator(oc.Interval(0, 100), payoff, memory=50), numbers(100, 12))


@case()
def pool() -> Answers:
    shared, log = oc.Pool(), Log()
    forecasters = [oc.Recalibrator(oc.Interval(0, 100), pool=shared) for _ in range(3)]
    for rounds in zip(*(numbers(60, 13 + i) for i in range(3)), strict=True):
        for forecaster, (forecast, _) in zip(forecasters, rounds, strict=True):
            log.forecast(forecaster.predict(forecast))
        for forecaster, (_, y) in zip(forecasters, rounds, strict=True):
            forecaster.update(y)
    return log.answers(forecasters[0]) | {"outcomes": shared.outcomes}


@case()
def binary() -> Answers:
    plain = loop(oc.Recalibrator(oc.Binary()), events(60, 27))
    payoff = oc.BinaryCalibration(5, context=oc.by("hour", values=range(3))) + oc.NoRegret(oc.Brier())
    by_hour = loop(oc.Recalibrator(oc.Binary(), payoff), events(60, 17), x=lambda t: {"hour": t % 3})
    return plain | {f"by hour {name}": value for name, value in by_hour.items()}


@case()
def labels() -> Answers:
    return loop(oc.Recalibrator(oc.Labels(LABELS)), matches(40, 18))


@case()
def circle() -> Answers:
    rng = np.random.default_rng(19)
    at = (25.0 * np.arange(40) + rng.normal(0.0, 20.0, 40)) % 360.0
    pairs = [(oc.Normal(float(a), 25.0), float((a + rng.normal(30.0, 40.0)) % 360.0)) for a in at]
    return loop(oc.Recalibrator(oc.Circle(360, cells=8)), pairs)


@case()
def box() -> Answers:
    rng = np.random.default_rng(20)
    pairs = []
    for t in range(30):
        a, b = 0.5 + 0.3 * np.sin(t / 2.0), 3.0 * np.cos(t / 3.0)
        y = [float(np.clip(a + 0.2 * rng.normal(), 0, 1)), float(np.clip(b + 1.5 * rng.normal(), -5, 5))]
        pairs.append(([oc.Normal(a, 0.15), oc.Normal(b, 1.0)], y))
    return loop(oc.Recalibrator(oc.Box([(0, 1), (-5, 5)], cells=(2, 3))), pairs)


def _small() -> Any:
    return oc.Interval(0, 100, cells=12, tail_cells=1)


def _stock(action: str, y: float) -> float:
    """Utility of a large or a small order for an uncertain demand."""
    order = 70.0 if action == "much" else 35.0
    return min(order, y) / 100.0 - 0.004 * order


@case()
def decisions() -> Answers:
    """Decision calibration and swap regret."""
    actions = ["much", "little"]
    payoff = oc.payoffs.DecisionCalibration(actions, _stock) + oc.payoffs.SwapRegret(actions, _stock, sharpness=10)
    return loop(oc.Recalibrator(_small(), payoff), numbers(40, 21))


@case()
def recipe() -> Answers:
    peak = oc.Recipe(lambda y: [y > 60.0], lambda x, p: [x["hour"] < 6, x["hour"] >= 6], bound=1.0, jumps=[60.0])
    payoff = oc.QuantileCalibration(LEVELS) + peak + oc.NoRegret(oc.CRPS())
    return loop(oc.Recalibrator(oc.Interval(0, 100), payoff), numbers(60, 22), x=lambda t: {"hour": t % 12})


# --- the paper's algorithms


def _forecaster(space: Any, payoff: Any, oracle: Any, pairs: Iterable[tuple[Any, Any]]) -> Answers:
    return loop(oc.Forecaster(space, payoff, oracle=oracle), pairs)


@case()
def orca() -> Answers:
    quantiles = oc.QuantileCalibration(LEVELS)
    interval = _forecaster(_small(), quantiles, oc.Orca(steps=40, cells=10), numbers(15, 24))
    label = _forecaster(oc.Labels(LABELS), oc.LabelCalibration(5), oc.Orca(steps=40), matches(15, 25))
    outcomes = [(None, y) for _, y in numbers(15, 26)]
    alone = _forecaster(_small(), oc.MomentMatching(2), oc.Orca(steps=40, cells=10), outcomes)
    parts = {"interval": interval, "labels": label, "alone": alone}
    return {f"{part} {name}": value for part, answers in parts.items() for name, value in answers.items()}


@case()
def exact_binary_root() -> Answers:
    return _forecaster(oc.Binary(), oc.BinaryCalibration(5), oc.paper.BinaryRoot(), events(60, 27))


@case()
def exact_two_cells() -> Answers:
    payoff = oc.QuantileCalibration(LEVELS) + oc.IntervalCalibration(0.8)
    return _forecaster(_small(), payoff, oc.paper.TwoCells(), numbers(40, 28))


@case(tolerance=1e-6)  # the path ends within the tolerance of its last step
def exact_moments() -> Answers:
    """Moments only: the oracle leaves open which distribution has them."""
    found = _forecaster(_small(), oc.payoffs.MomentBasedCalibration(3), oc.paper.LogitPath(), numbers(20, 31))
    return {name: value for name, value in found.items() if name not in ("quantiles", "cdf")}


@case(tolerance=1e-6)  # the path ends within the tolerance of its last step
def exact_simplex() -> Answers:
    return _forecaster(oc.Labels(LABELS), oc.payoffs.SimplexCalibration(3), oc.paper.LogitPath(), matches(30, 30))


@case(tolerance=1e-6)  # the path ends within the tolerance of its last step
def exact_decisions() -> Answers:
    actions = ["much", "little"]
    payoff = oc.payoffs.DecisionCalibration(actions, _stock) + oc.payoffs.SwapRegret(actions, _stock, sharpness=10)
    return _forecaster(_small(), payoff, oc.paper.LogitPath(), numbers(25, 32))


@case()
def partition() -> Answers:
    found = {}
    scored = oc.paper.PartitionedRecalibrator(oc.Binary(), cells=2, grid=5)
    settings: dict[str, tuple[Any, Any]] = {
        "binary": (scored, events(60, 33)),
        "labels": (oc.paper.PartitionedRecalibrator(oc.Labels(LABELS), cells=2, grid=5), matches(30, 35)),
    }
    for part, (forecaster, pairs) in settings.items():
        found |= {f"{part} {name}": value for name, value in loop(forecaster, pairs).items()}
        found[f"{part} calibration"] = [forecaster.calibration_error, forecaster.calibration_bound]
    return found | {"regret": [scored.regret, scored.regret_bound]}


@case()
def conformal_level() -> Answers:
    level, asked = oc.paper.ConformalLevel(0.8, grid=10), []
    for y in np.random.default_rng(36).beta(2.0, 1.0, 80):
        asked.append(level.predict())
        level.update(bool(y <= asked[-1]))
    bounds = [level.coverage, level.coverage_bound]
    return {"plain asked": asked, "plain bounds": bounds}


# --- frames, streams and integrations


def panel_frame(first: int, last: int, known: int, *, step: int = 1) -> Any:
    """Rows of two series, 1 to 3 days ahead of daily cutoffs, with outcomes before the day `known`."""
    import pandas as pd

    rows = []
    for number, name in enumerate(("north", "south")):
        rng = np.random.default_rng(38 + number)
        centre = 50.0 + 15.0 * np.sin(np.arange(100) / 5.0)
        y = np.clip(centre + 4.0 + rng.normal(0.0, 9.0, 100), 0.0, 100.0)
        error = rng.normal(0.0, 3.0, (100, 3))
        for cutoff in range(first, last, step):
            for ahead in (1, 2, 3):
                t = cutoff + ahead
                mean, spread = centre[t] + ahead * error[t, ahead - 1], 4.0 + ahead
                rows.append((name, cutoff, t, y[t] if t < known else np.nan, mean, mean - spread, mean + spread))
    frame = pd.DataFrame(rows, columns=["unique_id", "cutoff", "ds", "y", "ETS", "ETS-lo-80", "ETS-hi-80"])
    days = pd.date_range("2026-01-01", periods=120)
    return frame.assign(cutoff=days[frame.cutoff], ds=days[frame.ds])


def _new_columns(before: Any, after: Any, prefix: str = "") -> Answers:
    """Columns that were added or changed."""
    found: Answers = {}
    for name in after.columns:
        if name.endswith("alarm") or (name in before.columns and after[name].equals(before[name])):
            continue
        values = after[name]
        text = values.dtype.kind not in "fbiu" and not all(isinstance(v, (float, int)) or v is None for v in values)
        found[prefix + name] = [str(v) for v in values] if text else values.to_numpy(dtype=float)
    return found


@case("pandas")
def frame_with_cutoffs() -> Answers:
    frame = panel_frame(0, 40, 43)
    return _new_columns(frame, oc.recalibrate(frame, low=0, high=100, workers=1))


@case("pandas")
def frame_without_pool() -> Answers:
    """No cutoffs: each row is one step ahead of the one before."""
    frame = panel_frame(0, 40, 43)
    frame = frame[frame.groupby(["unique_id", "cutoff"]).cumcount() == 0].drop(columns="cutoff")
    return _new_columns(frame, oc.recalibrate(frame, pool=False, workers=1))


@case("pandas")
def frame_with_state() -> Answers:
    """A history, then daily frames whose outcomes come later, on one state file."""
    found: Answers = {}
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state.orcast"
        for call, (first, last, known) in enumerate([(0, 25, 25), (20, 27, 27), (22, 30, 30), (25, 31, 32)]):
            frame = panel_frame(first, last, known)
            after = oc.recalibrate(frame, low=0, high=100, state=state, workers=1)
            found |= _new_columns(frame, after, f"call {call} ")
        kept = oc.FrameState.load(state)
    return found | {"games": len(kept), "pending": kept.pending}


def stream_lines() -> list[dict[str, Any]]:
    """Lines of three series whose outcomes come late, with drops and repeated lines."""
    rng = np.random.default_rng(40)
    lines: list[dict[str, Any]] = []
    for t in range(40):
        mean, bounds = 50.0 + 10.0 * np.sin(t / 4.0), {"low": 0, "high": 100} if t == 0 else {}
        lines.append({"series": "load", "id": t, "forecast": {"mean": mean, "sd": 5.0}, **bounds})
        lines.append({"series": "rain", "id": t, "forecast": {"p": round(float(rng.uniform(0.1, 0.9)), 2)}})
        lines.append({"forecast": {"0.1": mean - 7.0, "0.5": mean, "0.9": mean + 8.0}})
        lines.append({"y": mean + 10.0 * float(rng.standard_normal())})
        if t >= 2:
            y = float(np.clip(mean + 12.0 * rng.standard_normal(), 0.0, 100.0))
            lines.append({"series": "load", "id": t - 2, **({"drop": True} if t % 9 == 5 else {"y": y})})
            lines.append({"series": "rain", "id": t - 2, "y": int(rng.random() < 0.6)})
        if t % 10 == 7:
            lines.append(lines[-2])
    return lines


def _leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Paths and values of a JSON document."""
    if isinstance(value, dict):
        return [leaf for key, each in value.items() for leaf in _leaves(each, f"{path}.{key}")]
    if isinstance(value, list):
        return [leaf for key, each in enumerate(value) for leaf in _leaves(each, f"{path}.{key}")]
    return [(path, value)]


@case()
def stream() -> Answers:
    """A session that is ended and continued from its state; some lines come again."""
    lines, answers = stream_lines(), []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "orcast", "stream", "--state", str(Path(folder) / "state.orcast")]
        for some in (lines[:150], lines[145:]):
            text = "".join(json.dumps(line) + "\n" for line in some)
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
            answers += [json.loads(line) for line in done.stdout.splitlines()]
    leaves = [leaf for answer in answers for leaf in _leaves(answer)]
    return {
        "lines": len(answers),
        "paths": [path for path, _ in leaves],
        "numbers": [float(value) for _, value in leaves if isinstance(value, (int, float))],
        "texts": [value for _, value in leaves if isinstance(value, str)],
    }


@case("pandas")
def nixtla() -> Answers:
    """A cross-validation frame, then forecasts of some days on a state."""
    from orcast.integrations import nixtla

    found: Answers = {}
    with tempfile.TemporaryDirectory() as folder:
        state, past = Path(folder) / "state.orcast", panel_frame(0, 27, 28)
        for day in range(27, 31):
            said = panel_frame(day, day + 1, 0).drop(columns=["y", "cutoff"])
            known = past if day == 27 else panel_frame(0, day, day + 1)[["unique_id", "ds", "y"]].drop_duplicates()
            after = nixtla.recalibrate(said, known.dropna(), low=0, high=100, state=state, workers=1)
            found |= _new_columns(said, after, f"day {day} ")
    return found


@case("gluonts")
def gluonts() -> Answers:
    """Quantile forecasts and sample paths of two items, two steps ahead."""
    import pandas as pd
    from gluonts.model.forecast import QuantileForecast, SampleForecast

    from orcast.integrations.gluonts import recalibrate

    found: Answers = {}
    for form in ("quantiles", "samples"):
        rng, state, rows = np.random.default_rng(41), oc.FrameState(), []
        y = {item: np.clip(rng.normal(54.0, 12.0, 60), 0.0, 100.0) for item in ("north", "south")}
        for t in range(5, 40):
            start, mean = pd.Period("2026-01-01", "D") + t, 50.0 + 10.0 * np.sin([t / 3.0, (t + 1) / 3.0])
            values = np.array([mean - 6.0, mean, mean + 7.0])
            forecasts: list[Any] = [QuantileForecast(values, start, ["0.1", "0.5", "0.9"], item_id=item) for item in y]
            if form == "samples":
                forecasts = [SampleForecast(mean + 5.0 * rng.standard_normal((8, 2)), start, item) for item in y]
            known = [{"start": pd.Period("2026-01-01", "D"), "target": values[:t]} for values in y.values()]
            after = recalibrate(forecasts, known, state=state, low=0, high=100, workers=1)
            rows += [each.samples if form == "samples" else each.forecast_array for each in after]
        found[form] = rows
    return found


@case("sktime", "skpro")
def sktime() -> Answers:
    import pandas as pd
    from sktime.forecasting.naive import NaiveForecaster

    from orcast.integrations.sktime import RecalibratedForecaster

    t = np.arange(96)
    values = 60.0 + 0.2 * t + 15.0 * np.sin(t * np.pi / 6.0) + np.random.default_rng(42).normal(0.0, 4.0, 96)
    y = pd.Series(values, index=pd.period_range("2018-01", periods=96, freq="M"))
    model = RecalibratedForecaster(NaiveForecaster(sp=12), low=0).fit(y[:80], fh=[1, 2, 3])
    found = {"before": model.predict_quantiles(alpha=LEVELS).to_numpy()}
    model.update(y[80:])
    return found | {
        "after": model.predict_quantiles(alpha=LEVELS).to_numpy(),
        "interval": model.predict_interval(coverage=0.9).to_numpy(),
        "point": model.predict().to_numpy(),
    }


def _table(rows: int, seed: int) -> tuple[Any, Any]:
    """Features and a noisy linear outcome."""
    rng = np.random.default_rng(seed)
    X = rng.normal(0.0, 1.0, (rows, 3))
    return X, 50.0 + X @ [8.0, -5.0, 2.0] + rng.normal(0.0, 4.0 + 3.0 * np.abs(X[:, 0]))


@case("sklearn")
def sklearn() -> Answers:
    from sklearn.linear_model import LinearRegression, LogisticRegression

    from orcast.integrations.sklearn import RecalibratedClassifier, RecalibratedRegressor

    X, y = _table(200, 44)
    regressor = RecalibratedRegressor(LinearRegression(), low=0, high=100, batch=10).fit(X[:120], y[:120])
    found = {"before": regressor.predict_quantiles(X[120:130], LEVELS)}
    regressor.partial_fit(X[120:180], y[120:180])
    found |= {
        "after": regressor.predict_quantiles(X[180:], LEVELS),
        "mean": regressor.predict(X[180:]),
        "interval": regressor.predict_interval(X[180:], 0.8),
    }
    classifier = RecalibratedClassifier(LogisticRegression(tol=1e-12)).fit(X[:120], y[:120] > 50.0)
    classifier.partial_fit(X[120:180], y[120:180] > 50.0)
    return found | {"probabilities": classifier.predict_proba(X[180:])}


@case("river")
def river() -> Answers:
    from river import linear_model, preprocessing

    from orcast.integrations.river import RiverClassifier, RiverRegressor

    X, y = _table(120, 45)
    regressor = RiverRegressor(preprocessing.StandardScaler() | linear_model.LinearRegression(), low=0, high=100)
    classifier = RiverClassifier(preprocessing.StandardScaler() | linear_model.LogisticRegression())
    log = Log()
    for row, outcome in zip(X, y, strict=True):
        x = dict(zip("abc", row.tolist(), strict=True))
        band = regressor.predict_one(x, with_interval=True)
        log.add(mean=regressor.predict_one(x), band=[band.lower, band.upper])
        log.add(probability=classifier.predict_proba_one(x).get(True, np.nan))
        regressor.learn_one(x, float(min(max(outcome, 0.0), 100.0)))
        classifier.learn_one(x, bool(outcome > 50.0))
    return log.answers() | guarantee(regressor.guarantee)
