"""States of games: as plain data and arrays, to and from files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from numpy.typing import NDArray

from orcast.engine import Oracle
from orcast.game import Forecaster
from orcast.payoffs import Payoff, payoff_from_plain
from orcast.persistence import files as storage
from orcast.persistence.kinds import oracle_from_plain
from orcast.spaces import Space, space_from_plain
from orcast.validation import short

if TYPE_CHECKING:
    from orcast.pool import Pool

Arrays = dict[str, NDArray[Any]]
Game = TypeVar("Game", bound=Forecaster)

# What may have to be given again, because it has functions, which are not saved.
GIVEN = ("payoff", "space", "oracle", "pool")


def write_state(game: Forecaster, path: str | os.PathLike[str]) -> None:
    """Write a game's state."""
    storage.write(path, *state_of(game, game.kind))


def read_state(
    cls: type[Game],
    path: str | os.PathLike[str],
    *,
    payoff: Payoff | None = None,
    space: Space | None = None,
    oracle: Oracle | None = None,
    pool: Pool | None = None,
) -> Game:
    """Read a game of a class from its file."""
    header, arrays = storage.read(path)
    try:
        return game_from(header, arrays, cls.kind, cls=cls, payoff=payoff, space=space, oracle=oracle, pool=pool)
    except ValueError as reason:
        if _asks_the_user(reason):
            raise
        raise ValueError(f"{reason}: {path}") from reason


@contextmanager
def reading(path: str | os.PathLike[str], owner: str) -> Iterator[tuple[dict[str, Any], Arrays]]:
    """Header and arrays of the file of a class, and one clear sentence for whatever cannot be made of them."""
    header, arrays = storage.read(path)
    if header.get("class") != owner:
        raise ValueError(f"expected the state of a {owner}, got that of a {header.get('class')}: {path}")
    try:
        yield header, arrays
    except storage.UNREADABLE as reason:
        raise storage.unusable(reason, path) from reason


def state_of(game: Forecaster, owner: str) -> tuple[dict[str, Any], Arrays]:
    """A game's state as a header of plain data and named arrays, under the name of the class that owns it: a copy."""
    with game.lock:
        rounds, pending = game.rounds.to_plain()
        arrays = {f"memory/{name}": array.copy() for name, array in game.engine.arrays().items()}
        arrays |= {f"pending/{name}": array.copy() for name, array in pending.items()}
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
            "crossing_reported": game.crossing_reported,
            "pooled": game.pool is not None,
            "randomised": game.randomised,
            "rounds": rounds,
            **({"seasons": list(game.seasons)} if game.seasons else {}),
        }
    return header, arrays


def game_from(
    header: dict[str, Any],
    arrays: Arrays,
    owner: str,
    *,
    cls: type[Game],
    payoff: Payoff | None = None,
    space: Space | None = None,
    oracle: Oracle | None = None,
    pool: Pool | None = None,
) -> Game:
    """The game that has a state; refuses what it cannot use, in one sentence."""
    if header.get("class") != owner:
        raise ValueError(f"expected the state of a {owner}, got that of a {header.get('class')}")
    if bool(header.get("pooled")) != (pool is not None):
        was, got = ("in a pool", "none") if pool is None else ("in no pool", repr(pool))
        raise ValueError(f"expected pool= as the game was saved, {was}, got {got}")
    try:
        experts = header["experts"]
        if not (isinstance(experts, list) and all(isinstance(name, str) for name in experts)):
            raise TypeError(f"experts are names, not {short(experts)}")
        if len(set(experts)) < len(experts) or not experts:
            raise ValueError(f"experts have different names, not {short(experts)}")
        optional: dict[str, Any] = {} if pool is None else {"pool": pool}
        if "seasons" in header:
            optional["seasons"] = header["seasons"]
        game = cls(
            as_saved(space, header["space"], space_from_plain, "space"),
            as_saved(payoff, header["payoff"], payoff_from_plain, "payoff"),
            oracle=as_saved(oracle, header["oracle"], oracle_from_plain, "oracle"),
            memory=header["memory"],
            outside=header["outside"],
            max_pending=header["max_pending"],
            **optional,
            randomised=header.get("randomised"),
        )
        game.begin(tuple(experts), header["sizes"])
        game.engine.restore(inside(arrays, "memory/"))
        if pool is not None and not pool.has_told(game.engine):
            raise ValueError(f"expected pool= with the pool that the game was in, or a later state of it, got {pool!r}")
        game.rounds.from_plain(header["rounds"], inside(arrays, "pending/"))
        game.crossing_reported = bool(header["crossing_reported"])
    except storage.UNREADABLE as reason:
        if _asks_the_user(reason):
            raise
        raise storage.unusable(reason) from reason
    return game


def inside(arrays: Arrays, prefix: str) -> Arrays:
    """The arrays whose names begin so, under the rest of their names."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def as_saved(given: Any, saved: dict[str, Any], read: Callable[[dict[str, Any]], Any], what: str) -> Any:
    """What was saved; or what is given again, if it is configured alike."""
    if given is None:
        return read(saved)
    other = json.loads(json.dumps(given.to_plain()))
    if other != saved:
        where, theirs, ours = _difference(saved, other, what)
        raise ValueError(f"expected the same {what} as was saved: {where} was {short(theirs)}, got {short(ours)}")
    return given


def _asks_the_user(reason: BaseException) -> bool:
    """Whether an error is about what was given again, or must be, and not about the file."""
    return str(reason).startswith("expected the same") or any(f" {name}= " in str(reason) for name in GIVEN)


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
