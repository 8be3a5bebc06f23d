"""Runs that use every kernel, short enough for uncompiled kernels too.

As a program, it saves the results and the names of the kernel functions that ran: python kernel_runs.py results.npz
"""

import inspect
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROUNDS = 24
LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])


def series(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = 50.0 + 3.0 * rng.normal(size=ROUNDS).cumsum()
    return x, x + 1.0 + 3.0 * rng.standard_t(3, size=ROUNDS)


def state(recal: Any) -> Array:
    """Everything that a game carries from round to round."""
    arrays = [*recal.engine.arrays().values(), *recal.rounds.monitor_rows()]
    return np.concatenate([np.asarray(array, dtype=np.float64).ravel() for array in arrays])


def result(
    recal: Any, forecast: Callable[[int], Any], outcomes: Any, read: Any, late: int = 0, **options: Any
) -> Array:
    """Each outcome comes `late` rounds after its forecast; the forecasts, then the state."""
    rows = []
    for t in range(len(outcomes)):
        chosen = {name: option(t) for name, option in options.items()}
        p = recal.predict(forecast(t), id=t, **chosen) if forecast(t) is not None else recal.predict(id=t, **chosen)
        rows.append(np.atleast_1d(read(p)))
        if t >= late:
            recal.update(outcomes[t - late], id=t - late)
    return np.concatenate([np.concatenate(rows), state(recal)])


def bits(numbers: Array) -> bytes:
    """All bits of numbers, but for those of nan."""
    return np.where(np.isnan(numbers), np.nan, numbers).tobytes()


def recals() -> Iterator[tuple[str, Callable[[], Array]]]:
    import orcast as oc
    from orcast.committee.state import SERIES
    from orcast.kernels import records

    x, y = series()
    space = oc.Interval(0, 100)
    budget = records.ACCOUNT.index("budget")
    hour = oc.by("hour", values=range(3))
    everything = oc.QuantileCalibration(context=hour) + oc.MomentMatching(3) + oc.NoRegret(oc.CRPS(), oc.MSE())

    def normal(t: int) -> Any:
        return oc.Normal(x[t], 2.0)

    def no_expert(t: int) -> None:
        return None

    def quantiles(p: Any) -> Any:
        return p.quantile(LEVELS)

    def two(t: int) -> Any:
        return {"one": oc.Normal(x[t], 2.0), "other": oc.Normal(x[t] + 2.0, 4.0) if t % 3 else None}

    def atoms(t: int) -> Any:
        return oc.Ensemble([0.0, 0.0, max(x[t] - 48.0, 0.0), max(x[t] - 45.0, 0.0)])

    rain = np.where(np.arange(ROUNDS) % 2 == 0, 0.0, np.clip(y - 45.0, 0.0, 30.0))
    yield "default", lambda: result(oc.Recalibrator(space), normal, y, quantiles)
    yield "late", lambda: result(oc.Recalibrator(space), normal, y, quantiles, late=4)
    yield (
        "contexts",
        lambda: result(oc.Recalibrator(space, everything), normal, y, quantiles, x=lambda t: {"hour": t % 3}),
    )
    yield (
        "experts",
        lambda: result(
            oc.Recalibrator(space, everything), no_expert, y, quantiles, experts=two, x=lambda t: {"hour": t % 3}
        ),
    )
    yield "line", lambda: result(oc.Recalibrator(), normal, y * np.where(np.arange(ROUNDS) == 5, 50.0, 1.0), quantiles)
    yield "atoms", lambda: result(oc.Recalibrator(oc.Interval(0, 30)), atoms, rain, quantiles)
    yield (
        "jumps",
        lambda: result(
            oc.Forecaster(
                space,
                oc.IntervalCalibration([0.5, 0.9]) + oc.payoffs.ThresholdCalibration([45.0, 55.0]),
                oracle=oc.Committee(),
            ),
            normal,
            y,
            quantiles,
        ),
    )

    def broken(payoff: Any = None) -> Array:
        """A ledger that owes more than it may: other forecasts are searched, and even cells."""
        recal = oc.Recalibrator(space, payoff)
        first = result(recal, normal, y[:5], quantiles)
        engine: Any = recal.engine
        moments = int(engine.ledger.layout.part_table[1, records.PART.index("start")])
        engine.ledger.total[moments : moments + 2] = 30.0, -30.0
        engine.ledger.account[budget] = 1.0
        p = recal.predict(oc.Normal(95.0, 0.01))
        record = recal.rounds.pending[None].record
        return np.concatenate([first, p.quantile(LEVELS), record.row[np.isfinite(record.row)]])

    def coarse(payoff: Any) -> Array:
        """A ledger that no forecast on these cells answers: the promise grows by their resolution."""
        recal = oc.Recalibrator(oc.Interval(0, 1, cells=8, tail_cells=1), payoff, oracle=oc.Equilibrium())
        engine: Any = recal.engine
        engine.ledger.total[:2] = -2.0 * 0.45 * 300.0, 300.0
        engine.ledger.account[budget] = float(engine.ledger.total @ engine.ledger.total)
        rows = []
        # around an expert they are coarser still, so that even ones are tried
        for expert in (oc.Normal(0.5, 0.3), oc.Normal(0.95, 0.001)):
            p = recal.predict(expert)
            assert p.certificate is not None
            rows.append([*p.quantile(LEVELS), p.certificate.worst_next, p.certificate.allowed])
        return np.ravel(rows)

    def at_the_edge() -> Array:
        """An expert at a bound whose outcomes are elsewhere: a lower temperature holds, then only even cells do."""
        recal = oc.Recalibrator(oc.Interval(0, 1), oracle=oc.Equilibrium(temperature=1000.0))
        rows = []
        for t in range(4):
            engine: Any = recal.engine
            engine.ledger.total[: len(LEVELS)] = 0.0
            engine.ledger.account[budget] = engine.ledger.square + (3.0, 1.0, 0.3, 0.0)[t]
            p = recal.predict(oc.Normal(0.0, 0.05))
            rows.append([*p.quantile(LEVELS), p.certificate.worst_next])
            recal.update(0.5)
        return np.ravel(rows)

    def randomised() -> Array:
        """Coins, and seasons that are presumed."""
        recal = oc.Recalibrator(space, randomised=7, seasons=(4,))
        return result(recal, normal, y, quantiles)

    def whole() -> Array:
        recal = oc.Recalibrator(space)
        rows = recal.run([normal(t) for t in range(ROUNDS)], np.clip(y, 0.0, 100.0))
        return np.concatenate([np.ravel(rows), state(recal)])

    def pooled() -> Array:
        """Two games that learn together, and a third that begins with what they learnt."""
        pool = oc.Pool()
        two_recals = [oc.Recalibrator(space, pool=pool) for _ in range(2)]
        rows = []
        for t in range(ROUNDS // 2):
            for recal in two_recals:
                rows.append(quantiles(recal.predict(normal(t), id=t)))
                if t >= 2:
                    recal.update(y[t - 2], id=t - 2)
        rows.append(result(oc.Recalibrator(space, pool=pool), normal, y[:4], quantiles))
        return np.concatenate([*rows, *map(state, two_recals), pool.rows.ravel()])

    def seasonal() -> Array:
        """Outcomes with a season of 7 steps, which is found."""
        recal = oc.Recalibrator(space)
        time = np.arange(3 * ROUNDS)
        found = result(recal, lambda t: oc.Normal(50.0, 2.0), 50.0 + 6.0 * (time % 7 == 0) + np.sin(time), quantiles)
        engine: Any = recal.engine
        assert engine.group.series_rows[0, SERIES.index("short_season")] == 7.0
        return found

    def out_of_order() -> Array:
        """Outcomes that come late, the later one of two first, and some never."""
        recal = oc.Recalibrator(space)
        rows = []
        for t in range(ROUNDS):
            rows.append(quantiles(recal.predict(normal(t), id=t)))
            if t % 5 == 4:
                for late in (t - 1, t - 3, t - 2):
                    recal.update(y[late], id=late)
        return np.concatenate([*rows, state(recal)])

    yield "out of order", out_of_order
    yield "pool", pooled
    yield "season", seasonal
    yield "broken", broken
    yield "coarse", lambda: coarse(oc.MomentMatching(2))
    yield "at the edge", at_the_edge
    yield "randomised", randomised
    yield "run", whole
    yield "no expert", lambda: result(oc.Forecaster(space), no_expert, y, quantiles)
    yield (
        "guarded",
        lambda: result(oc.Recalibrator(mode="guarded"), lambda t: oc.Normal(10.0, 1.0), y, quantiles, late=2),
    )

    rng = np.random.default_rng(1)
    chance = rng.random(ROUNDS)
    happened = (rng.random(ROUNDS) < chance).astype(int)

    def probability(p: Any) -> float:
        return float(p.mean())

    def both(t: int) -> Any:
        return {"one": float(chance[t]), "other": 0.4 if t % 3 else None}

    def drawn(labels: bool) -> Array:
        """Forecasts drawn from nodes, near to 0 and 1 too, with sums far apart at two of them."""
        recal = oc.Recalibrator(oc.Labels(range(3)) if labels else oc.Binary(), randomised=7)
        given = np.array([*chance, 0.0, 1.0, 0.4])
        masses = np.column_stack((given, 0.5 * (1.0 - given), 0.5 * (1.0 - given))) if labels else given
        rows = [recal.run(list(masses), [*happened, 1, 0, 0])]
        engine: Any = recal.engine
        engine.ledger.total[: len(engine.rules.grid) * engine.rules.events] *= 50.0
        engine.ledger.account[budget] = engine.ledger.square
        p = recal.predict(masses[0] if labels else 0.5)
        recal.update(1)
        assert p.certificate is not None
        return np.concatenate([*map(np.ravel, rows), p.mass, [p.certificate.worst_next], state(recal)])

    yield "drawn events", lambda: drawn(False)
    yield "drawn labels", lambda: drawn(True)
    yield "binary", lambda: result(oc.Recalibrator(oc.Binary()), lambda t: float(chance[t]), happened, probability)
    yield (
        "binary, late",
        lambda: result(oc.Recalibrator(oc.Binary()), no_expert, happened, probability, late=3, experts=both),
    )

    def against() -> Array:
        """A stubborn expert whom nature contradicts, without learners: the strict root too."""
        recal = oc.Forecaster(oc.Binary(), oc.BinaryCalibration(grid=5), oracle=oc.Equilibrium(temperature=1e12))
        rows = []
        for _ in range(4 * ROUNDS):
            p = recal.predict(0.99)
            rows.append(float(p.mean()))
            recal.update(int(p.mean() < 0.5))
        return np.concatenate([rows, state(recal)])

    def binary_run() -> Array:
        recal = oc.Recalibrator(oc.Binary())
        rows = recal.run([float(p) for p in chance], happened.tolist())
        return np.concatenate([np.ravel(rows), state(recal)])

    by_chance = oc.BinaryCalibration(context=oc.by_expert("level", edges=[0.5]))
    yield (
        "binary, contexts",
        lambda: result(oc.Recalibrator(oc.Binary(), by_chance), no_expert, happened, probability, experts=both),
    )
    yield "binary, against", against
    yield "binary, run", binary_run

    labels = rng.integers(0, 3, ROUNDS)
    yield (
        "labels",
        lambda: result(
            oc.Recalibrator(oc.Labels(["a", "b", "c"])),
            lambda t: [0.5, 0.3, 0.2],
            ["abc"[k] for k in labels],
            lambda p: p.mass,
            late=2,
        ),
    )

    def labels_against() -> Array:
        """The least likely label each time, at a temperature at which Newton does not converge."""
        space = oc.Labels(["a", "b", "c"])
        recal = oc.Forecaster(space, oc.LabelCalibration(grid=5), oracle=oc.Equilibrium(temperature=0.02))
        rows = []
        for _ in range(ROUNDS):
            p = recal.predict([0.9, 0.06, 0.04])
            rows.append(p.mass)
            recal.update(space.value(int(p.mass.argmin())))
        return np.concatenate([*rows, state(recal)])

    yield "labels, against", labels_against

    def attacked() -> Array:
        """What each outcome that Nature looks at would lead to."""
        from orcast.testing import candidates, squares_after, worst_outcome

        recal = oc.Forecaster(space, everything, oracle=oc.Committee())
        rows = []
        for t in range(6):
            recal.predict(normal(t), x={"hour": 1})
            rows.append(squares_after(recal, candidates(recal)))
            recal.update(worst_outcome(recal)[0])
        return np.concatenate([*rows, state(recal)])

    yield "attacked", attacked

    def opened() -> Array:
        """A forecast whose outer cells are open-ended, and with a random draw."""
        p = oc.Forecast([-np.inf, 0.0, 1.0], [0.0, 1.0, np.inf], [0.2, 0.5, 0.3])
        drawn = oc.Forecast.trusted(p.left, p.right, p.mass, None, np.random.default_rng(0).random())
        return np.array([p.mean(), p.var(), *p.to_normal(), *p.quantile(LEVELS), *drawn.quantile(LEVELS)])

    def frame() -> Array:
        """A frame whose outcomes come late, and in which some days are missing, in one compiled loop."""
        import pandas as pd

        days = np.arange(ROUNDS) + 4 * (np.arange(ROUNDS) >= ROUNDS // 2)
        time = pd.Timestamp("2026-01-01") + pd.to_timedelta(days, unit="D")
        table = pd.DataFrame({"time": time, "cutoff": time - pd.Timedelta(days=3), "model": x, "y": y})
        out = oc.recalibrate(table, y="y", model="model", time="time", cutoff="cutoff", low=0, high=100)
        return np.asarray(out.select_dtypes(float).to_numpy(), dtype=np.float64).ravel()

    def panel() -> Array:
        """Two series at two horizons, which learn together."""
        import pandas as pd

        rows = [
            (name, t, t - h, x[t] + bias, y[t])
            for t in range(10)
            for name, bias in (("a", 0.0), ("b", 2.0))
            for h in (1, 2)
        ]
        table = pd.DataFrame(rows, columns=["unique_id", "time", "cutoff", "model", "y"])
        out = oc.recalibrate(
            table, y="y", model="model", series="unique_id", time="time", cutoff="cutoff", low=0, high=100
        )
        return np.asarray(out.select_dtypes(float).to_numpy(), dtype=np.float64).ravel()

    yield "open-ended", opened
    yield "frame", frame
    yield "panel", panel

    def resumed(payoff: Any = None) -> Array:
        """A frame in two parts, with outcomes outstanding between them."""
        import pandas as pd

        time = np.arange(ROUNDS)
        table = pd.DataFrame({"time": time, "cutoff": time - 3, "model": x, "y": y})
        options = {"y": "y", "model": "model", "time": "time", "cutoff": "cutoff", "low": 0, "high": 100}
        found, state = [], oc.FrameState()
        for part in (table[: ROUNDS // 2], table[ROUNDS // 2 :]):
            out = oc.recalibrate(part, state=state, payoff=payoff, **options)
            found.append(out.select_dtypes(float).to_numpy().ravel())
        return np.concatenate(found)

    def reloaded(space: Any, forecasts: list[Any], outcomes: Any, payoff: Any = None) -> Callable[[], Array]:
        """Pickled between forecast and outcome."""

        def run() -> Array:
            recal = oc.Recalibrator(space, payoff)
            rows = []
            for t in range(8):
                p = recal.predict(forecasts[t], id=t)
                rows += [p.mass, np.array([p.certificate.worst_next])]
                if t % 3 == 0:
                    recal = pickle.loads(pickle.dumps(recal))
                recal.update(outcomes[t], id=t)
            return np.concatenate([*rows, state(recal)])

        return run

    def watched() -> Array:
        """Monitors of PITs, some of them intervals or with unknown ends, with alarms and overlapping rounds."""
        rng = np.random.default_rng(0)
        low = np.concatenate([rng.random(60), 1.0 - 0.02 * rng.random(240)])
        rows = np.stack([low, np.minimum(low + 0.1 * (rng.random(300) < 0.3), 1.0)], axis=1)
        found = []
        for horizon in (1, 3):
            monitor = oc.Monitor(horizon=horizon, run_length=1_000)
            found += [monitor.add("pit", rows[:, [0, 0, 1, 1]]).ravel(), monitor._rows[0].state]
            monitor.update(pit=0.3)
            found.append(monitor.add("pit", np.sort(rng.random((50, 4)), axis=1)).ravel())
        return np.concatenate(found)

    yield "monitors", watched
    yield "resumed frame", resumed
    yield "resumed frame, general", lambda: resumed(oc.QuantileCalibration() + oc.payoffs.ThresholdCalibration([45.0]))
    yield "reloaded", reloaded(space, [normal(t) for t in range(ROUNDS)], y)
    on_labels = oc.Labels(["a", "b", "c"]), [[0.5, 0.3, 0.2]] * ROUNDS, ["abc"[k] for k in labels]
    yield "reloaded labels", reloaded(*on_labels)
    yield "general labels", reloaded(*on_labels, oc.payoffs.SimplexCalibration())
    by_level = oc.QuantileCalibration(context=oc.by_expert("level", edges=[48.0, 52.0]))
    yield (
        "forgetting",
        lambda: result(oc.Recalibrator(space, by_level, memory=10), no_expert, y, quantiles, experts=two),
    )


def kernel_functions() -> dict[Any, str]:
    """Functions of the uncompiled kernels that have C types, by their code."""
    found = {}
    for package in ("kernels", "committee"):
        folder = Path(import_module(f"orcast.{package}").__file__ or "").parent
        for path in folder.glob("[!_]*.pxd"):
            module = f"orcast.{package}.{path.stem}"
            for thing in vars(import_module(module)).values():
                if inspect.isfunction(thing) and thing.__module__ == module:
                    found[thing.__code__] = f"{module}.{thing.__name__}"
    return found


def main() -> None:
    ran = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            ran.add(frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    results = {name: run() for name, run in recals()}
    sys.setprofile(None)
    functions = kernel_functions()
    idle = sorted(name for code, name in functions.items() if code not in ran)
    np.savez(sys.argv[1], idle=np.array(idle), functions=np.array(sorted(functions.values())), **results)


if __name__ == "__main__":
    main()
