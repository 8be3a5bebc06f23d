"""States of games: as plain data and arrays, to and from files."""

from __future__ import annotations

import json
import os
from typing import Any

from numpy.typing import NDArray

from orcast.engine import Oracle
from orcast.game import Forecaster
from orcast.payoffs import Payoff, payoff_from_plain
from orcast.persistence import files as storage
from orcast.persistence.kinds import oracle_from_plain
from orcast.spaces import Space, space_from_plain
from orcast.validation import short

# What may have to be given again, because it has functions, which are not saved.
GIVEN = ("payoff", "space", "oracle")


def write_state(game: Forecaster, path: str | os.PathLike[str], owner: str) -> None:
    """Write a game's state under the name of the class that owns it."""
    storage.write(path, *state_of(game, owner))


def read_state(
    path: str | os.PathLike[str],
    owner: str,
    *,
    payoff: Payoff | None = None,
    space: Space | None = None,
    oracle: Oracle | None = None,
) -> Forecaster:
    """Read a game's state that was written under the name of the class that owns it."""
    header, arrays = storage.read(path)
    try:
        return game_from(header, arrays, owner, payoff=payoff, space=space, oracle=oracle)
    except ValueError as reason:
        if str(reason).startswith("expected the same") or any(f" {name}= " in str(reason) for name in GIVEN):
            raise
        raise ValueError(f"{reason}: {path}") from reason


def state_of(game: Forecaster, owner: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """A game's state as a header of plain data and named arrays, under the name of the class that owns it."""
    rounds, pending = game.rounds.to_plain()
    arrays: dict[str, NDArray[Any]] = {f"memory/{name}": a for name, a in game.engine.arrays().items()}
    arrays.update({f"pending/{name}": a for name, a in pending.items()})
    header = {
        "class": owner,
        "space": game.space.to_plain(),
        "payoff": game.payoff.to_plain(),
        "oracle": game.oracle.to_plain(),
        "memory": game.memory,
        "experts": list(game.experts),
        "sizes": getattr(game.engine, "sizes", None),
        "outside": game.outside,
        "max_pending": game.max_pending,
        "rounds": rounds,
        "said_crossed": game._said_crossed,
    }
    return header, arrays


def game_from(
    header: dict[str, Any],
    arrays: dict[str, NDArray[Any]],
    owner: str,
    *,
    payoff: Payoff | None = None,
    space: Space | None = None,
    oracle: Oracle | None = None,
) -> Forecaster:
    """The game that has a state; refuses what it cannot use, in one sentence."""
    if header.get("class") != owner:
        raise ValueError(f"expected the state of a {owner}, got that of a {header.get('class')}")
    try:
        game = Forecaster(
            _given(space, header["space"], space_from_plain, "space"),
            _given(payoff, header["payoff"], payoff_from_plain, "payoff"),
            oracle=_given(oracle, header["oracle"], oracle_from_plain, "oracle"),
            memory=header["memory"],
            outside=header["outside"],
            max_pending=header["max_pending"],
        )
        game._bind(tuple(header["experts"]), header["sizes"])
        game.engine.restore({name[7:]: a for name, a in arrays.items() if name.startswith("memory/")})
        game.rounds.from_plain(
            header["rounds"], {name[8:]: a for name, a in arrays.items() if name.startswith("pending/")}
        )
        game._said_crossed = bool(header["said_crossed"])
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as reason:
        if str(reason).startswith("expected the same") or any(f" {name}= " in str(reason) for name in GIVEN):
            raise
        raise ValueError(f"expected a state that this version can use, got one that it cannot ({reason})") from reason
    return game


def _given(given: Any, saved: dict[str, Any], read: Any, what: str) -> Any:
    """What was saved; or what is given again, if it is configured alike."""
    if given is None:
        return read(saved)
    other = json.loads(json.dumps(given.to_plain()))
    if other != saved:
        where, theirs, ours = _difference(saved, other, what)
        raise ValueError(f"expected the same {what} as was saved: {where} was {short(theirs)}, got {short(ours)}")
    return given


def _difference(saved: Any, given: Any, where: str) -> tuple[str, Any, Any]:
    """Where two plain forms first differ, and what is there."""
    if isinstance(saved, dict) and isinstance(given, dict):
        for key in [*saved, *given]:
            if saved.get(key) != given.get(key):
                return _difference(saved.get(key), given.get(key), f"{where}.{key}")
    if isinstance(saved, list) and isinstance(given, list) and len(saved) == len(given):
        for i, (a, b) in enumerate(zip(saved, given, strict=True)):
            if a != b:
                return _difference(a, b, f"{where}[{i}]")
    return where, saved, given
