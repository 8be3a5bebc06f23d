"""Who loads a state and plays a step: a class for each kind of state, by the public names alone.

A state lies at a path without ending, to which each kind adds its own.  A player that plays on may write there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import orcast as oc

from .given import GIVEN
from .plain import read, written

Json = Any
Step = dict[str, Json]

LEVELS = [0.1, 0.5, 0.9]


class Player(Protocol):
    """A state in use."""

    @classmethod
    def load(cls, path: Path, options: dict[str, Json]) -> Self:
        """Go on from what is at a path."""
        ...

    def play(self, step: Step) -> Json:
        """What comes of a step."""
        ...

    def save(self, path: Path) -> None:
        """Write it to a path; of a player whose state is a file already, let go of it."""
        ...


def _given(options: dict[str, Json]) -> dict[str, Any]:
    """What has functions, and so is given again."""
    return GIVEN[options["given"]]() if "given" in options else {}


def _forecast(p: Any, compare: str = "quantiles") -> Json:
    """What is compared of a forecast."""
    if not isinstance(p, oc.Forecast):
        return written({"mass": p.mass})
    return written(
        {"mean": p.mean(), **({"std": p.std()} if compare == "moments" else {"quantiles": p.quantile(LEVELS)})}
    )


def _guarantee(guarantee: oc.Guarantee) -> Json:
    """What is compared of a guarantee: by name, so that one may have more."""
    groups = {
        part: {label: [group.rounds, group.miscalibration, group.promised] for label, group in labels.items()}
        for part, labels in guarantee.groups.items()
    }
    names = ("rounds", "miscalibration", "promised", "held", "delay", "parts")
    return written({**{name: getattr(guarantee, name) for name in names}, "groups": groups})


class Game:
    """A game with a `save` of its own.

    Of an oracle that settles the moments of a forecast and leaves open which distribution has them, only these are
    compared.
    """

    CLASSES: ClassVar[dict[str, Any]] = {
        "Forecaster": oc.Forecaster,
        "PartitionedRecalibrator": oc.paper.PartitionedRecalibrator,
        "Recalibrator": oc.Recalibrator,
    }

    def __init__(self, game: Any, compare: str = "quantiles") -> None:
        self.game, self.compare = game, compare

    @classmethod
    def load(cls, path: Path, options: dict[str, Json]) -> Self:
        game = cls.CLASSES[options["class"]].load(path.with_suffix(".orcast"), **_given(options))
        return cls(game, options.get("compare", "quantiles"))

    def save(self, path: Path) -> None:
        self.game.save(path.with_suffix(".orcast"))

    def play(self, step: Step) -> Json:
        given = {name: read(value) for name, value in step.items()}
        kind = next(iter(given))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            answer = getattr(self, f"_{kind}")(given.pop(kind), **given)
        # that quantiles cross is said once, and a state knows whether it was
        return {**answer, "warnings": len(warned)} if warned else answer

    def _predict(self, forecast: Any, **given: Any) -> Json:
        p = self.game.predict(forecast, **given)
        certificate = {name: getattr(p.certificate, name) for name in ("holds", "promised")}
        return {**_forecast(p, self.compare), **written(certificate)}

    def _update(self, y: Any, **given: Any) -> None:
        self.game.update(y, **given)

    def _drop(self, id: Any) -> None:
        self.game.drop(id)

    def _history(self, outcomes: list[Any], forecasts: Any = None, **given: Any) -> Json:
        played = self.game.play(forecasts, outcomes, at=LEVELS, **given)
        return written({"rows": played.rows, "holds": played.holds, "promised": played.promised,
                        "miscalibration": played.miscalibration})  # fmt: skip

    def _look(self, _: Any) -> Json:
        look = {"pending": written(list(self.game.pending)), "guarantee": _guarantee(self.game.guarantee)}
        if isinstance(self.game, oc.paper.PartitionedRecalibrator):
            bounds = {name: self.game.regret_bound(score) for name, score in SCORES.items()}
            cells = {"cells": self.game.cells.total, "visited": self.game.cells.rounds, "edges": self.game.edges}
            look |= written({"regret_bounds": bounds, **cells})
        return look


class Pooled:
    """Two games of a pool, each in a file of its own, and the pool in a third."""

    def __init__(self, pool: oc.Pool, games: list[Any]) -> None:
        self.pool, self.games = pool, [Game(game) for game in games]

    @classmethod
    def load(cls, path: Path, options: dict[str, Json]) -> Self:
        pool = oc.Pool.load(f"{path}.pool.orcast")
        return cls(pool, [oc.Recalibrator.load(f"{path}.{number}.orcast", pool=pool) for number in range(2)])

    def save(self, path: Path) -> None:
        self.pool.save(f"{path}.pool.orcast")
        for number, each in enumerate(self.games):
            each.game.save(f"{path}.{number}.orcast")

    def play(self, step: Step) -> Json:
        if "look" in step:
            return {"outcomes": self.pool.outcomes, "games": [each.play(step) for each in self.games]}
        return self.games[step["game"]].play({name: value for name, value in step.items() if name != "game"})


SCORES = {"brier": oc.Brier(), "log": oc.scores.LogScore()}


class Level:
    """A conformal level by itself."""

    def __init__(self, level: oc.paper.ConformalLevel) -> None:
        self.level = level

    @classmethod
    def load(cls, path: Path, options: dict[str, Json]) -> Self:
        return cls(oc.paper.ConformalLevel.load(path.with_suffix(".orcast")))

    def save(self, path: Path) -> None:
        self.level.save(path.with_suffix(".orcast"))

    def play(self, step: Step) -> Json:
        level = self.level
        if "y" in step:
            asked = level.predict()
            # of a uniform distribution, the quantile at a level is the level
            level.update(step["y"] <= asked)
            return asked
        return {name: getattr(level, name) for name in NUMBERS_OF_A_LEVEL}


NUMBERS_OF_A_LEVEL = ("rounds", "coverage", "miscalibration", "promised", "coverage_bound")


def _frame(columns: Json) -> Any:
    """A data frame; {"dates": [...]} is a column of dates."""
    import pandas as pd

    found = {name: read(values) for name, values in columns.items()}
    return pd.DataFrame({k: pd.to_datetime(v["dates"]) if isinstance(v, dict) else v for k, v in found.items()})


def _new_columns(before: Any, after: Any) -> Json:
    """Columns that were not there, or not like this; None where something is missing."""
    new = [name for name in after.columns if name not in before.columns or not after[name].equals(before[name])]
    return {name: after[name].astype(object).where(after[name].notna(), None).tolist() for name in new}


class Panel:
    """A panel's state in a file, which each frame reads and writes."""

    def __init__(self, path: Path, options: dict[str, Any]) -> None:
        self.path, self.options = path.with_suffix(".orcast"), options

    @classmethod
    def load(cls, path: Path, options: dict[str, Json]) -> Self:
        rest = {name: read(value) for name, value in options.items() if name != "given"}
        return cls(path, {**rest, **_given(options)})

    def save(self, path: Path) -> None:
        assert path.with_suffix(".orcast") == self.path

    def play(self, step: Step) -> Json:
        with warnings.catch_warnings():
            # what they say is in the columns
            warnings.simplefilter("ignore")
            return self._look() if "look" in step else self._frames(step)

    def _frames(self, step: Step) -> Json:
        frame = _frame(step["frame"])
        return written(_new_columns(frame, oc.recalibrate(frame, state=self.path, workers=1, **self.options)))

    def _look(self) -> Json:
        state = oc.PanelState.load(self.path)
        return {"models": list(state.models), "games": len(state), "pending": state.pending}


class Nixtla(Panel):
    """The same by the function for frames of Nixtla's."""

    def _frames(self, step: Step) -> Json:
        from orcast.integrations import nixtla

        frame, history = _frame(step["frame"]), _frame(step["history"]) if "history" in step else None
        after = nixtla.recalibrate(frame, history, state=self.path, workers=1, **self.options)
        return written(_new_columns(frame, after))


class Stream:
    """`orcast stream --state` as a process; to let go of the state is to kill it."""

    def __init__(self, path: Path, *options: str) -> None:
        command = [sys.executable, "-m", "orcast", "stream", "--state", f"{path}.orcast", *options]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    @classmethod
    def load(cls, path: Path, options: dict[str, Json]) -> Self:
        return cls(path)

    def save(self, path: Path) -> None:
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.process.wait()

    def play(self, step: Step) -> Json:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(step["line"]).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


class GluonTS:
    """A recalibrator of GluonTS's forecasts."""

    def __init__(self, recalibrator: Any) -> None:
        self.recalibrator = recalibrator

    @classmethod
    def load(cls, path: Path, options: dict[str, Json]) -> Self:
        from orcast.integrations.gluonts import ForecastRecalibrator

        return cls(ForecastRecalibrator.load(path.with_suffix(".orcast"), **_given(options)))

    def save(self, path: Path) -> None:
        self.recalibrator.save(path.with_suffix(".orcast"))

    def play(self, step: Step) -> Json:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._play(step)

    def _play(self, step: Step) -> Json:
        import numpy as np
        import pandas as pd
        from gluonts.model.forecast import QuantileForecast, SampleForecast

        if "look" in step:
            return {"pending": self.recalibrator.pending, "items": list(self.recalibrator.items),
                    "guarantees": [_guarantee(self.recalibrator.guarantee(item, step=ahead))
                                   for item, ahead in step["look"]]}  # fmt: skip
        start = pd.Period(step["start"], step["freq"])
        if "target" in step:
            target = [np.nan if y is None else y for y in step["target"]]
            self.recalibrator.update({"item_id": step["item"], "start": start, "target": np.array(target)})
            return None
        if "samples" in step:
            forecast = SampleForecast(np.array(step["samples"]), start, step["item"])
        else:
            keys, values = zip(*step["quantiles"], strict=True)
            forecast = QuantileForecast(np.array(values), start, list(keys), item_id=step["item"])
        try:
            return self._numbers(self.recalibrator.predict(forecast))
        except ValueError:
            return "refused"

    @staticmethod
    def _numbers(forecast: Any) -> Json:
        return written(forecast.samples if hasattr(forecast, "samples") else forecast.forecast_array)


class Predictor(GluonTS):
    """A predictor of GluonTS's with its recalibrator, in a folder."""

    def __init__(self, predictor: Any) -> None:
        super().__init__(predictor.recalibrator)
        self.predictor = predictor

    @classmethod
    def load(cls, path: Path, options: dict[str, Json]) -> Self:
        import gluonts.model.predictor

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return cls(gluonts.model.predictor.Predictor.deserialize(path))

    def save(self, path: Path) -> None:
        path.mkdir(exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.predictor.serialize(path)

    def _play(self, step: Step) -> Json:
        import numpy as np
        import pandas as pd

        if "look" in step:
            return super()._play(step)
        start = pd.Period(step["start"], step["freq"])
        entry = {"item_id": step["item"], "start": start, "target": np.array(step["target"])}
        return [self._numbers(forecast) for forecast in self.predictor.predict([entry])]


class Spark:
    """A series of a stream of Spark's, whose state is bytes that Spark keeps; its task is called without Spark."""

    def __init__(self, columns: str, **options: Any) -> None:
        from sparks import Acted

        self.stream = Acted(columns, **options)

    @classmethod
    def load(cls, path: Path, options: dict[str, Json]) -> Self:
        from sparks import Kept

        rest = {name: read(value) for name, value in options.items() if name not in ("given", "key")}
        self = cls(**rest, **_given(options))
        kept = self.stream.states[tuple(options["key"])] = Kept()
        kept.update((path.with_suffix(".bin").read_bytes(),))
        return self

    def save(self, path: Path) -> None:
        (kept,) = self.stream.states.values()
        path.with_suffix(".bin").write_bytes(kept.get[0])

    def play(self, step: Step) -> Json:
        given = set(self.stream.df.columns)
        answers = self.stream.batch(*map(tuple, step["rows"]))
        new = [{name: value for name, value in row.items() if name not in given} for row in answers]
        return written([{name: value for name, value in row.items() if value is not None} for row in new])


class Forecasts:
    """Forecasts in their plain form, which needs no file."""

    CLASSES: ClassVar[dict[str, Any]] = {
        each.__name__: each
        for each in (
            oc.forecasts.BinaryForecast,
            oc.forecasts.BoxForecast,
            oc.forecasts.CircleForecast,
            oc.Forecast,
            oc.forecasts.LabelForecast,
            oc.forecasts.PointsForecast,
        )
    }

    @classmethod
    def load(cls, path: Path, options: dict[str, Json]) -> Self:
        return cls()

    def save(self, path: Path) -> None:
        pass

    def play(self, step: Step) -> Json:
        forecast = self.CLASSES[step["class"]](**step["plain"])
        assert forecast.to_plain() == step["plain"]
        return _forecast(forecast)


PLAYERS: dict[str, type[Player]] = {
    "forecasts": Forecasts,
    "game": Game,
    "gluonts": GluonTS,
    "level": Level,
    "nixtla": Nixtla,
    "panel": Panel,
    "pooled": Pooled,
    "predictor": Predictor,
    "spark": Spark,
    "stream": Stream,
}
# What a kind needs beside the library itself.
NEEDS = {
    "gluonts": "gluonts",
    "nixtla": "pandas",
    "panel": "pandas",
    "predictor": "gluonts",
    "spark": "pyspark",
}

Begin = Callable[[Path], Player]
