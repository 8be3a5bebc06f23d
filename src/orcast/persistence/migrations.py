"""Migrations: state files of older formats, in the form that the next format has.

A function for each kind of state takes the header and the arrays of a file of one format to those of the next.  What
is not in the table is the same in both.  `tests/golden` has files of every format, and what has to come of them.

Format 2 has the version of orcast that wrote the file (`writer`); its pending rounds are those of `rounds.Rounds`:
counters and rounds in one part of a header, arrays under `pending/`; and arrays have the names of their fields.
Format 3 has other learners on ordered spaces.  How many numbers a game has there depends on what it plays, so these
arrays stay as they are until a game takes them over: see `orcast.engine.format_2`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.constants import PER_ABSOLUTE
from orcast.serialise import features_to_json

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
Migration = Callable[[Header, Arrays], tuple[Header, Arrays]]

# What arrays were called in format 1, and are called in format 2.
ARRAY_NAMES = {"note": "certificate", "record": "tracker_record", "said": "claim", "tally": "statistics"}
# The same of payoffs.
PAYOFF_NAMES = {"MomentCalibration": "MomentBasedCalibration"}


def migrated(header: Header, arrays: Arrays, version: int, newest: int) -> tuple[Header, Arrays]:
    """A state of the newest format from one of an older one."""
    for step in range(version, newest):
        migration = MIGRATIONS[step].get(str(header.get("class")))
        if migration is not None:
            header, arrays = migration(header, arrays)
    return header, arrays


def renamed(name: str) -> str:
    """The name of an array of format 1 in format 2."""
    folder, slash, field = name.rpartition("/")
    return f"{folder}{slash}{ARRAY_NAMES.get(field, field)}"


def renamed_payoff(plain: dict[str, Any]) -> dict[str, Any]:
    """The plain form of a payoff of format 1 in format 2."""
    parts = {"parts": [renamed_payoff(part) for part in plain["parts"]]} if "parts" in plain else {}
    return {**plain, "kind": PAYOFF_NAMES.get(plain["kind"], plain["kind"]), **parts}


# --- from format 1 to 2 ---


def game(header: Header, arrays: Arrays) -> tuple[Header, Arrays]:
    """A `Forecaster` or `Recalibrator`."""
    return _game_header(header), {_game_array(name): array for name, array in arrays.items()}


def _game_header(header: Header, attached: list[Any] | None = None) -> Header:
    """The header of a game, or what is its own of one; what is attached to its pending rounds comes from elsewhere."""
    rest = dict(header)
    if "payoff" in rest:
        rest["payoff"] = renamed_payoff(rest["payoff"])
    waiting, crossing = rest.pop("waiting"), rest.pop("said_crossed")
    own: list[Any] = [None] * len(waiting) if attached is None else attached
    rounds = {name: rest.pop(name) for name in ("issued", "usual_lag", "reserved")}
    rounds["pending"] = [[*entry, each] for entry, each in zip(waiting, own, strict=True)]
    return {**rest, "crossing_reported": crossing, "rounds": rounds}


def _game_array(name: str) -> str:
    head, slash, rest = name.partition("/")
    return renamed(f"{'pending' if head == 'page' else head}{slash}{rest}")


def stream(header: Header, arrays: Arrays) -> tuple[Header, Arrays]:
    """The snapshot of a stream; what was answered is now attached to the rounds."""
    names = ("issued", "usual_lag", "reserved", "said_crossed", "waiting")
    own = []
    for values, (_, answers, _) in zip(header["games"]["own"], header["series"], strict=True):
        # answers and rounds have the same ids, in the same order
        attached = [[digest, answer] for _, digest, answer in answers]
        new = _game_header(dict(zip(names, values, strict=True)), attached)
        own.append([new["crossing_reported"], new["rounds"]])
    shapes = [
        ["pending" if head == "page" else head, *([renamed(name), *rest] for name, *rest in fields)]
        for head, *fields in header["games"]["shapes"]
    ]
    rest = {name: value for name, value in header.items() if name != "format"}
    return {
        **rest,
        "games": {**header["games"], "own": own, "shapes": shapes},
        "series": [[name, last] for name, _, last in header["series"]],
    }, arrays


def partition(header: Header, arrays: Arrays) -> tuple[Header, Arrays]:
    """A `PartitionedRecalibrator`; what it kept of its pending rounds is now attached to those of its cells."""
    rest = dict(header)
    found: Arrays = {}
    folders: dict[str, Arrays] = {}
    for name, array in arrays.items():
        head, _, tail = name.partition("/")
        if head == "round":
            number, _, field = tail.partition("/")
            folders.setdefault(number, {})[field] = array
        else:
            found[renamed(name)] = array
    pending: list[list[Any]] = [[] for _ in rest["games"]]
    waiting, crossing = rest.pop("waiting"), rest.pop("said_crossed")
    for at, (id, place, issued) in enumerate(waiting):
        folder = folders[str(at)]
        kept = {"expert": folder["said"], **{name: folder[name] for name in ("played", "known", "cells")}}
        for name, array in folder.items():
            if name.startswith("page/"):
                record = renamed(name.removeprefix("page/"))
                found[f"cell/{place}/pending/{len(pending[place])}/{record}"] = array
        pending[place].append([id, issued, None, features_to_json(kept)])
    games = [
        [key, sizes, {"issued": issued, "usual_lag": lag, "reserved": reserved, "pending": own}]
        for (key, issued, lag, reserved, sizes), own in zip(rest["games"], pending, strict=True)
    ]
    order = [[id, place] for id, place, _ in waiting]
    return {**rest, "crossing_reported": crossing, "games": games, "pending": order}, found


def gluonts(header: Header, arrays: Arrays) -> tuple[Header, Arrays]:
    """The `ForecastRecalibrator` of GluonTS: games, and one that has not begun; points are attached to their rounds."""
    games = []
    for item_id, step, points, own in header["games"]:
        point = dict(points)
        games.append([item_id, step, _game_header(own, [point.get(time) for time, *_ in own["waiting"]])])
    found: Arrays = {}
    for name, array in arrays.items():
        number, slash, rest = name.partition("/")
        found[f"{number}{slash}{_game_array(rest)}"] = array
    return {**header, "blank": _game_header(header["blank"]), "games": games}, found


def panel(header: Header, arrays: Arrays) -> tuple[Header, Arrays]:
    """A `PanelState`: counters stood before the memory, and what a pending row keeps before its record."""
    new = {name: arrays[name] for name in ("calendar", "calendar/shapes")} | {"bounds": arrays["ends"]}
    models = []
    for number, model in enumerate(header["models"]):
        own = {name.partition("/")[2]: array for name, array in arrays.items() if name.startswith(f"{number}/")}
        games, pages = _unstacked(own, "game"), _unstacked(own, "pages")
        for game in games:
            game[3] = absolute_errors(game[3], game[4])
        parts = {
            "counters": [game[:5] for game in games],
            "memory": [game[5:] for game in games],
            "issued": [page[:, 1:2] for page in pages],
            "records": [page[:, 6:] for page in pages],
            "pending": [page[:, [0, 2, 3, 4, 5]] for page in pages],
        }
        for part, each in parts.items():
            new[f"{number}/{part}"] = np.concatenate([np.empty(0), *(array.ravel() for array in each)])
            new[f"{number}/{part}/shapes"] = np.array([array.shape for array in each], dtype=np.int64).ravel()
        for part, was in (("stamps", "when"), ("log", "said")):
            new[f"{number}/{part}"], new[f"{number}/{part}/shapes"] = own[was], own[f"{was}/shapes"]
        new[f"{number}/rows"] = own["rows"]
        rest = {name: value for name, value in model.items() if name not in ("rounds", "round")}
        records = [[sizes, [[renamed(name), *rest] for name, *rest in fields]] for sizes, fields in model["rounds"]]
        models.append({**rest, "records": records, "record": model["round"]})
    options = header["terms"]
    if options is not None and options["payoff"] is not None:
        options = {**options, "payoff": renamed_payoff(options["payoff"])}
    return {**header, "options": options, "models": models}, new


def _unstacked(arrays: Arrays, name: str) -> list[NDArray[Any]]:
    """The arrays of two sides that were written as one."""
    shapes = arrays[f"{name}/shapes"].reshape(-1, 2)
    parts = np.split(arrays[name].copy(), np.cumsum(shapes.prod(axis=1)))[:-1]
    return [part.reshape(tuple(shape)) for part, shape in zip(parts, shapes.tolist(), strict=True)]


def absolute_errors(squares: Any, count: Any) -> Any:
    """The sum of absolute errors that gives a point forecast the spread which a sum of squares gave it in format 1.

    >>> from orcast.residuals import Residuals
    >>> residuals = Residuals()
    >>> residuals.total, residuals.count = float(absolute_errors(36.0, 4)), 4  # a root mean square of 3
    >>> round(residuals.scale(0.0, None), 12)
    3.0
    """
    if not (0.0 <= squares <= 1e250 and 0.0 <= count <= 2**53):
        raise ValueError("a counter is negative or not a number")
    return np.sqrt(squares * count) / PER_ABSOLUTE


# By the format that a file has, and the class that is written in it.
MIGRATIONS: dict[int, dict[str, Migration]] = {
    1: {
        "Forecaster": game,
        "Recalibrator": game,
        "Stream": stream,
        "PartitionedRecalibrator": partition,
        "ForecastRecalibrator": gluonts,
        "PanelState": panel,
    },
    2: {},
}
