"""The lines of the public interface as they stand, what importing costs, and that compiled kernels run behind it."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orcast as oc
from orcast.engine import ordered

# From design/architecture.md, as it stands there: what concerns an Interval and the default payoff.
LINES = """\
import numpy as np, scipy.stats
import orcast as oc

space = oc.Interval(0, 36_000)                              # MW
recal = oc.Recalibrator(space)                              # quantile + moment calibration + no-regret in CRPS; no knobs

p = recal.predict({0.1: 8_100, 0.5: 9_000, 0.9: 10_400})    # quantiles by level
low, high = p.interval(0.9)
p.mean(), p.std(), p.cdf(9_500), p.quantile([0.05, 0.95]), p.sample(100, rng=np.random.default_rng(0))
p.certificate.holds, p.certificate.worst_next               # known before the outcome
recal.update(9_240)

recal.predict(oc.Normal(9_000, 800));                recal.update(9_100)
recal.predict(scipy.stats.gamma(9, scale=1_000));    recal.update(8_700)     # anything with cdf or ppf
recal.predict(oc.Ensemble([8_800, 9_000, 9_300]));   recal.update(9_400)     # members or samples

recal.predict(oc.Normal(9_000, 800), id="14:00")            # outcomes may come late, out of order, or never
recal.predict(oc.Normal(9_200, 900), id="15:00")
recal.update(9_300, id="15:00"); recal.drop("14:00")

g = recal.guarantee            # rounds, miscalibration <= promised, held (share of rounds whose certificate held), parts by name
recal.save("wind.orcast"); recal = oc.Recalibrator.load("wind.orcast")      # no pickle; refuses what it can't read
"""  # noqa: E501


def test_the_public_face_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(LINES, names)
    assert 7_000 < names["low"] < 8_100 < 10_400 < names["high"] < 12_000  # type: ignore[operator]
    p, g, recal = names["p"], names["g"], names["recal"]
    assert isinstance(p, oc.Forecast)
    assert p.certificate is not None
    assert p.certificate.holds
    assert isinstance(g, oc.Guarantee)
    assert g.rounds == 5
    assert g.miscalibration <= g.promised
    assert g.held == 1.0
    assert set(g.parts) == {"quantile", "moment", "regret crps"}
    assert isinstance(recal, oc.Recalibrator)
    assert recal.guarantee == g
    assert [path.name for path in tmp_path.iterdir()] == ["wind.orcast"]


# More lines from there: contexts, several experts, features, other spaces.
MORE = """\
payoff = oc.QuantileCalibration(context=oc.by("hour", values=range(24))) + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS())
recal = oc.Recalibrator(space, payoff)
recal.predict(experts={"tree": oc.Normal(9_000, 800), "net": oc.Normal(9_300, 500)}, x={"hour": 14}); recal.update(9_100)

peak = oc.Recipe(witness=lambda y: [y > 30_000], context=lambda x, p: [x["hour"] < 6, x["hour"] >= 6], bound=1.0)
rain = oc.Recalibrator(oc.Binary());  rain.predict(0.7);  rain.update(1)
cls = oc.Recalibrator(oc.Labels(["home", "draw", "away"])); cls.predict([0.5, 0.3, 0.2]); cls.update("draw")
price = oc.Recalibrator();  price.predict(oc.Normal(42.0, 5.0));  price.update(61.3)      # no bounds known: the whole line
"""  # noqa: E501


def test_more_of_the_public_face_runs_as_it_stands() -> None:
    names: dict[str, Any] = {"oc": oc, "space": oc.Interval(0, 36_000)}
    exec(MORE, names)
    g = names["recal"].guarantee
    assert set(g.parts) == {"quantile by hour", "moment", "regret crps against tree", "regret crps against net"}
    assert g.groups["quantile by hour"]["hour=14"].rounds == 1.0
    assert g.groups["quantile by hour"]["hour=15"].rounds == 0.0
    for name in ("recal", "rain", "cls", "price"):
        g = names[name].guarantee
        assert (g.rounds, g.held) == (1, 1.0)
        assert g.miscalibration <= g.promised
    assert isinstance(names["price"].space, oc.Line)
    assert isinstance(names["rain"].predict(0.7), oc.forecasts.BinaryForecast)
    assert set(names["cls"].predict({"home": 0.5, "draw": 0.3, "away": 0.2}).to_dict()) == {"home", "draw", "away"}


# And of the paper's own algorithms.
ORCA = """\
game = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration(), oracle=oc.Orca(steps=400))   # no expert, the paper's ORCA
p = game.predict(); game.update(0.3)
"""  # noqa: E501


def test_the_papers_orca_runs_as_it_stands() -> None:
    names: dict[str, Any] = {"oc": oc}
    exec(ORCA, names)
    assert names["p"].certificate.holds
    assert names["p"].certificate.half_space == 0.0
    assert names["game"].guarantee.rounds == 1


def test_the_peak_of_the_public_face_is_calibrated_by_night_and_day() -> None:
    peak = oc.Recipe(witness=lambda y: [y > 30_000], context=lambda x, p: [x["hour"] < 6, x["hour"] >= 6], bound=1.0)
    recal = oc.Recalibrator(oc.Interval(0, 36_000), oc.QuantileCalibration() + peak)
    oc.check_payoff(peak, recal.space, x={"hour": 3})
    rng = np.random.default_rng(0)
    said: dict[bool, list[float]] = {True: [], False: []}
    for t in range(300):
        hour = t % 24
        p = recal.predict(oc.Normal(28_000, 2_000), x={"hour": hour})
        y = float(np.clip(rng.normal(31_000 if hour >= 6 else 26_000, 2_000), 0, 36_000))
        said[hour >= 6].append(1 - p.cdf(30_000) - (y > 30_000))
        recal.update(y)
    for errors in said.values():
        assert abs(np.mean(errors)) < 0.2
    assert recal.guarantee.parts["recipe"] == pytest.approx(
        np.hypot(*(np.sum(errors) / 300 for errors in said.values())), abs=1e-6
    )
    assert recal.guarantee.held == 1.0


def test_a_payoff_can_be_put_together() -> None:
    payoff = oc.QuantileCalibration() + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS())
    recal = oc.Recalibrator(oc.Interval(0, 36_000), payoff)
    recal.predict(oc.Normal(9_000, 800))
    recal.update(9_100)
    assert recal.payoff.to_plain() == oc.Recalibrator(oc.Interval(0, 1)).payoff.to_plain()


def test_a_forecaster_without_an_expert() -> None:
    forecaster = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration())
    p = forecaster.predict()
    assert p.quantile([0.25, 0.75]) == pytest.approx([0.25, 0.75], abs=0.01)
    forecaster.update(0.3)
    assert forecaster.guarantee.rounds == 1


# --- imports ---


def fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    return done.stdout.strip()


def test_every_name_can_be_imported() -> None:
    assert fresh("from orcast import *; import orcast; print(sorted(set(orcast.__all__) - set(dir())))") == "[]"


def test_import_is_quick() -> None:
    code = "import time; start = time.process_time(); import orcast; print(time.process_time() - start)"
    assert min(float(fresh(code)) for _ in range(3)) < 0.3


def test_kernels_are_all_compiled_or_none() -> None:
    source = Path(oc.__file__).parent
    found = [path for path in source.glob("*/*") if path.suffix in (".so", ".pyd")]
    compiled = {(path.parent.name, path.name.partition(".")[0]) for path in found}
    kernels = {(path.parent.name, path.stem) for path in source.glob("*/[!_]*.pxd")}
    assert {folder for folder, _ in kernels} == {"kernels", "committee"}
    assert compiled in (set(), kernels)


def test_a_round_and_a_whole_history_are_one_call_of_a_kernel_each(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def empirical(name: str) -> Any:
        kernel = getattr(ordered.kernels, name)
        return lambda *given: calls.append(name) or kernel(*given)

    for name in ("predict", "update", "run"):
        monkeypatch.setattr(ordered.kernels, name, empirical(name))
    recal = oc.Recalibrator(oc.Interval(0, 1))
    recal.predict(oc.Normal(0.5, 0.1))
    recal.predict(oc.Normal(0.5, 0.1))
    recal.update(0.5)
    recal.run([oc.Normal(0.5, 0.1)] * 50, [0.5] * 50)
    recal.run([oc.Normal(0.5, 0.1)] * 50, [0.5] * 50)
    assert calls == ["predict", "predict", "update", "run", "run"]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_the_line_on_data_frames(kind: str) -> None:
    frames = pytest.importorskip(kind)
    rng = np.random.default_rng(0)
    y = 9_000 + rng.normal(0, 900, 40)
    columns = {"unique_id": ["north", "south"] * 20, "ds": np.repeat(np.arange(20), 2), "y": y, "other": y}
    df = frames.DataFrame(columns | {"tree": y * 0 + 9_000, "tree-lo-90": y * 0 + 8_500, "tree-hi-90": y * 0 + 9_500})
    names: dict[str, Any] = {"oc": oc, "df": df}
    line = 'frame = oc.recalibrate(df, y="y", model="tree", low=0, high=36_000)         # pandas or polars, long format'
    exec(line, names)
    frame = names["frame"]
    assert type(frame) is type(df)
    assert len(frame) == 40
    width = np.asarray(frame["tree_orcast-hi-90"]) - np.asarray(frame["tree_orcast-lo-90"])
    assert width[-10:].mean() > 1_500 > width[0]  # it has learnt that 90% of the outcomes are not within 500
    assert np.asarray(frame["tree_orcast_holds"]).all()
