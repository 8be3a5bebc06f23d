"""The tables of a store: every query, and a round as it is stored."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from orcast import limits
from orcast.serialise import features_from_json, features_to_json, id_from_plain, plain_id
from orcast.spaces import FiniteSpace, Space
from orcast.store.database import Database, Row
from orcast.store.states import SeriesState, forecast_from, rows_from
from orcast.store.times import as_datetime

if TYPE_CHECKING:
    from orcast.monitors import Alarm

# Columns of a round, in the order of the fields of `StoredRound`.
COLUMNS = (
    "id, opened, closed, horizon, issued, target, x, published, base, forecast, "
    "y, known, guarantee, revisions, series, checksum"
)
ADD_ROUND = (
    f"INSERT INTO rounds ({COLUMNS}) VALUES ({', '.join('?' * (COLUMNS.count(',') + 1))}) "
    "ON CONFLICT (series, id) DO NOTHING"
)
UNNAMED = "null"
# Forecasts that a round may publish.
BASE, RECALIBRATED = "base", "recalibrated"
LARGE = 2**53


def key(id: Any) -> str:
    """Text of an id or a name, alike for those that are equal."""
    text = str(id) if type(id) is int else json.dumps(plain_id(id))
    limits.check("id_characters", len(text))
    return text


def from_key(text: str | None) -> Any:
    """The inverse of `key`; no text is no id."""
    if text is None:
        return None
    return int(text) if text.isdecimal() else id_from_plain(json.loads(text))


def as_stored(id: Any) -> Any:
    """An id as it is read from the store: equal ones become one."""
    return id if type(id) in (int, str) else from_key(key(id))


@dataclass(slots=True, eq=False, repr=False)
class StoredRound:
    """A round of a series as it is stored.

    Attributes
    ----------
    series, id, horizon : names that the caller gave
    issued, target, known : times in UTC: of the forecast, of what it is about, and when its outcome was known (that of
        the last revision), or the round was dropped
    status : "pending", "settled" or "dropped"
    base : quantiles at the levels of the space, or masses of the cells, a row for each expert
    published : "recalibrated", or "base" by the `mode` of the series
    forecast : the forecast that was published; a base forecast has no certificate
    recalibrated : the recalibrated forecast, with its certificate
    y : outcome, after the last revision
    guarantee : rounds, miscalibration, promised, held and, unless it is 0, excess, after the outcome or last revision
    alarms : alarms that the outcome raised
    revisions : number of revisions of the outcome
    evicted : ids of the pending rounds that made way for this one
    repeated : whether this call came before, and changed nothing
    """

    key: str | None
    opened: int
    closed: int
    horizon_key: str | None
    issued_at: int
    target_at: int
    x_text: str | None = None
    published: str = RECALIBRATED
    base_bytes: bytes = b""
    forecast_bytes: bytes = b""
    y_text: str | None = None
    known_at: int | None = None
    guarantee_text: str | None = None
    revisions: int = 0
    number: int = 0
    of: Any = None  # its series
    evicted: tuple[Any, ...] = ()
    repeated: bool = False
    found: Any = None  # the recalibrated forecast

    series = property(lambda self: self.of.name)
    id = property(lambda self: from_key(self.key))
    horizon = property(lambda self: from_key(self.horizon_key))
    issued = property(lambda self: as_datetime(self.issued_at))
    target = property(lambda self: as_datetime(self.target_at))
    known = property(lambda self: as_datetime(self.known_at))
    base = property(lambda self: rows_from(self.base_bytes))
    features = property(lambda self: None if self.x_text is None else features_from_json(json.loads(self.x_text)))
    y = property(lambda self: None if self.y_text is None else shown(self.of.space, outcome_from(self.y_text)))

    def __repr__(self) -> str:
        return f"StoredRound({self.id!r}, {self.status}{f', y={self.y!r}' if self.status == 'settled' else ''})"

    @property
    def status(self) -> str:
        """State of the round."""
        return "pending" if not self.closed else "dropped" if self.y_text is None else "settled"

    @property
    def guarantee(self) -> dict[str, Any]:
        """Guarantee after the outcome."""
        told = json.loads(self.guarantee_text) if self.guarantee_text else {}
        return {name: value for name, value in told.items() if name != "alarms"}

    @property
    def alarms(self) -> list[Alarm]:
        """Alarms that the outcome raised."""
        if self.guarantee_text is None or "alarms" not in self.guarantee_text:
            return []
        from orcast.monitors import Alarm

        return [Alarm(**fields) for fields in json.loads(self.guarantee_text)["alarms"]]

    @property
    def forecast(self) -> Any:
        """The published forecast."""
        if self.published != BASE:
            return self.recalibrated
        from orcast.guard import base_forecast, base_of

        row = base_of(self.base)
        assert row is not None
        return base_forecast(self.of.space, row)

    @property
    def recalibrated(self) -> Any:
        """The recalibrated forecast with its certificate."""
        if self.found is None:
            self.found = forecast_from(self.of.space, self.forecast_bytes)
        return self.found

    @property
    def checksum(self) -> int:
        """Checksum of everything but the id, which a later unnamed round takes away."""
        plain = (
            *(self.number, self.opened, self.closed, self.horizon_key, self.issued_at, self.target_at, self.x_text),
            *(self.published, self.y_text, self.known_at, self.guarantee_text, self.revisions),
        )
        return zlib.crc32(self.forecast_bytes, zlib.crc32(self.base_bytes, zlib.crc32(repr(plain).encode())))

    @classmethod
    def checked(cls, row: Row) -> StoredRound:
        """Round of `COLUMNS` whose checksum is right; raises ValueError for another."""
        self = cls(*row[:-1])
        if self.checksum != row[-1]:
            raise ValueError(f"expected an intact round, got one with another checksum: {self.key}")
        return self


VALUES = attrgetter(*StoredRound.__slots__[: COLUMNS.count(",")], "checksum")


def outcome_text(canonical: Any) -> str:
    """A canonical outcome as text."""
    return json.dumps(features_to_json(canonical), allow_nan=False)


def outcome_from(text: str) -> Any:
    """The inverse of `outcome_text`."""
    return features_from_json(json.loads(text))


def shown(space: Space, canonical: Any) -> Any:
    """A canonical outcome as users give it."""
    indexed = isinstance(space, FiniteSpace) and isinstance(canonical, int)
    return space.value(canonical) if indexed else canonical  # type: ignore[attr-defined]


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


class Tables:
    """Queries of a store, all within a transaction."""

    def __init__(self, database: Database) -> None:
        self.database = database

    # --- values of the whole store
    def about(self, name: str) -> tuple[int, bytes] | None:
        """Version and value that belong to the whole store, such as a pool."""
        query = f"SELECT version, value FROM about WHERE name = ?{self.database.for_update}"
        return self.database.row(query, (name,))

    def put_about(self, name: str, version: int, value: bytes) -> None:
        """Write a value of the whole store."""
        self.database.execute(
            "INSERT INTO about VALUES (?, ?, ?) "
            "ON CONFLICT (name) DO UPDATE SET version = excluded.version, value = excluded.value",
            (name, version, value),
        )

    # --- series
    def count(self) -> int:
        """Number of series, none of which is ever deleted."""
        return self.database.row("SELECT max(number) FROM series")[0] or 0  # type: ignore[index]

    def names(self, after: int = 0, limit: int | None = None) -> list[tuple[int, str, int, int]]:
        """Number, name, options and version of all series, or of those after a number."""
        query = "SELECT number, name, options, version FROM series WHERE number > ? ORDER BY number LIMIT ?"
        return self.database.rows(query, (after, LARGE if limit is None else limit))

    def recent(self, limit: int) -> list[str]:
        """Names of the series of the rounds about the latest times."""
        query = (
            "SELECT name FROM series WHERE number IN "
            "(SELECT series FROM (SELECT series FROM rounds ORDER BY target DESC LIMIT ?) AS latest) "
            "ORDER BY number LIMIT ?"
        )
        return [name for (name,) in self.database.rows(query, (50 * limit, limit))]

    def find_series(self, name: str) -> tuple[int, int] | None:
        """Number and options of a series."""
        return self.database.row("SELECT number, options FROM series WHERE name = ?", (name,))

    def add_series(self, name: str, options: int) -> int:
        """Add a series, with an empty state; returns its number."""
        query = "INSERT INTO series (name, options, version, trimmed) VALUES (?, ?, 0, 0) RETURNING number"
        return self.database.row(query, (name, options))[0]  # type: ignore[index,no-any-return]

    def head(self, number: int, name: str) -> tuple[int, int, int] | None:
        """Version of a series, its options, and the last event whose rounds were deleted.

        Other transactions do not change them from now on.
        """
        query = f"SELECT version, options, trimmed FROM series WHERE number = ? AND name = ?{self.database.for_update}"
        return self.database.row(query, (number, name))

    def lock(self, names: Collection[str]) -> None:
        """Keep other transactions from some series, in one order for all, so that no two wait for each other."""
        if self.database.for_update:
            self.database.rows("SELECT number FROM series WHERE name = ANY(?) ORDER BY number FOR UPDATE", ([*names],))

    def state(self, number: int) -> bytes | None:
        """State of a series, if one was written."""
        found = self.database.row("SELECT state FROM states WHERE series = ?", (number,))
        return None if found is None else found[0]

    def put_states(self, states: Collection[SeriesState]) -> bool:
        """Write states if their versions are the ones before; returns whether all were."""
        query = "UPDATE series SET version = ?, options = ?, trimmed = ? WHERE number = ? AND version = ?"
        heads = [(each.version, each.options, each.trimmed, each.number, each.written) for each in states]
        if self.database.execute_many(query, heads) != len(heads):
            return False
        query = "INSERT INTO states VALUES (?, ?) ON CONFLICT (series) DO UPDATE SET state = excluded.state"
        rewritten = (each for each in states if each.rewritten)
        self.database.execute_many(query, ((each.number, each.kept.encode(each.number)) for each in rewritten))
        return True

    def options(self, number: int) -> str:
        """Options by their number."""
        found = self.database.row("SELECT options, digest FROM options WHERE number = ?", (number,))
        text, digest = found or ("", "")
        if digest != _digest(text):
            raise ValueError(f"expected intact options of series, got damaged ones: {self.database.name}")
        return str(text)

    def add_options(self, text: str) -> int:
        """Number of options, which are added if they are new."""
        digest = _digest(text)
        found = self.database.row("SELECT number FROM options WHERE digest = ?", (digest,))
        if found is None:
            query = "INSERT INTO options (digest, options) VALUES (?, ?) RETURNING number"
            found = self.database.row(query, (digest, text))
        return found[0]  # type: ignore[index,no-any-return]

    # --- rounds
    def round(self, series: int, id: str) -> StoredRound | None:
        """Round of a series by its id."""
        row = self.database.row(f"SELECT {COLUMNS} FROM rounds WHERE series = ? AND id = ?", (series, id))
        return None if row is None else StoredRound.checked(row)

    def pending(self, series: int) -> list[tuple[StoredRound, bytes]]:
        """Pending rounds and their numbers, the oldest first."""
        query = f"SELECT {COLUMNS}, record FROM rounds WHERE series = ? AND closed = 0 ORDER BY opened"
        return [(StoredRound.checked(row[:-1]), row[-1]) for row in self.database.rows(query, (series,))]

    def add_round(self, round: StoredRound) -> bool:
        """Add a pending round; returns False if there is one of that id."""
        return self.database.execute(ADD_ROUND, VALUES(round)).rowcount == 1  # type: ignore[no-any-return]

    def put_record(self, series: int, id: str, record: bytes) -> None:
        """Write the numbers of a pending round."""
        self.database.execute("UPDATE rounds SET record = ? WHERE series = ? AND id = ?", (record, series, id))

    def put_outcome(self, round: StoredRound) -> None:
        """Write the outcome of a round that is over."""
        query = (
            "UPDATE rounds SET closed = ?, y = ?, known = ?, guarantee = ?, revisions = ?, checksum = ?, "
            "record = NULL WHERE series = ? AND id = ?"
        )
        given = round.closed, round.y_text, round.known_at, round.guarantee_text, round.revisions, round.checksum
        self.database.execute(query, (*given, round.number, round.key))

    def forget_unnamed(self, series: int) -> None:
        """Take the id from the last unnamed round, which another one follows."""
        self.database.execute("UPDATE rounds SET id = NULL WHERE series = ? AND id = ?", (series, UNNAMED))

    def evicted(self, series: int, event: int) -> list[str]:
        """Ids of the rounds that made way for the one of an event."""
        query = "SELECT id FROM rounds WHERE series = ? AND closed = ? AND id IS NOT NULL"
        return [id for (id,) in self.database.rows(query, (series, event))]

    def newest(self, series: int, before: int, event: int, limit: int) -> list[StoredRound]:
        """Last rounds about a time before another, or about it and issued before an event, the newest first."""
        query = (
            f"SELECT {COLUMNS} FROM rounds WHERE series = ? AND target <= ? AND (target < ? OR opened < ?) "
            "ORDER BY target DESC, opened DESC LIMIT ?"
        )
        return [StoredRound.checked(row) for row in self.database.rows(query, (series, before, before, event, limit))]

    def settled(self, series: int, later: int) -> int | None:
        """Time of a settled round, by the number of those settled after it."""
        query = (
            "SELECT target FROM rounds WHERE series = ? AND closed > 0 AND y IS NOT NULL "
            "ORDER BY closed DESC LIMIT 1 OFFSET ?"
        )
        found = self.database.row(query, (series, later))
        return None if found is None else found[0]

    def since(self, series: int, event: int) -> list[StoredRound]:
        """Rounds that were open after an event."""
        query = f"SELECT {COLUMNS} FROM rounds WHERE series = ? AND (closed > ? OR closed = 0) ORDER BY opened"
        return [StoredRound.checked(row) for row in self.database.rows(query, (series, event))]

    def between(self, series: int | None, start: int, end: int, as_of: int) -> Iterable[Row]:
        """Rounds by the time that they are about, if they had been issued, in any order: to sort them here is slow."""
        where, given = ("", ()) if series is None else ("series = ? AND ", (series,))
        query = f"SELECT {COLUMNS} FROM rounds WHERE {where}target >= ? AND target <= ? AND issued <= ?"
        return self.database.execute(query, (*given, start, end, as_of))  # type: ignore[no-any-return]

    def trim(self, series: int, until: int) -> None:
        """Delete the rounds that were over at an event, their revisions, and the snapshots before it."""
        given = (series, until)
        self.database.execute(
            "DELETE FROM revisions WHERE series = ? AND opened IN "
            "(SELECT opened FROM rounds WHERE series = ? AND closed > 0 AND closed <= ?)",
            (series, *given),
        )
        self.database.execute("DELETE FROM rounds WHERE series = ? AND closed > 0 AND closed <= ?", given)
        self.database.execute("DELETE FROM snapshots WHERE series = ? AND event < ?", given)

    def kept_from(self, series: int, remember: int) -> int:
        """Event of the last round that is over and older than that many others; 0 if there are none."""
        query = "SELECT closed FROM rounds WHERE series = ? AND closed > 0 ORDER BY closed DESC LIMIT 1 OFFSET ?"
        found = self.database.row(query, (series, remember))
        return 0 if found is None else found[0]

    # --- revisions and snapshots
    def add_revision(self, series: int, opened: int, event: int, y: str, known: int) -> None:
        """Keep the outcome that a revision replaces."""
        self.database.execute("INSERT INTO revisions VALUES (?, ?, ?, ?, ?)", (series, opened, event, y, known))

    def former_outcomes(self, series: int, opened: int) -> list[tuple[str, int]]:
        """Outcomes of a round before its revisions and when they were known, the oldest first."""
        query = "SELECT y, known FROM revisions WHERE series = ? AND opened = ? ORDER BY event"
        return self.database.rows(query, (series, opened))

    def snapshots(self, series: int) -> list[int]:
        """Events of the snapshots of a series."""
        query = "SELECT event FROM snapshots WHERE series = ? ORDER BY event"
        return [event for (event,) in self.database.rows(query, (series,))]

    def snapshot(self, series: int, event: int) -> bytes:
        """State of a series after an event."""
        query = "SELECT state FROM snapshots WHERE series = ? AND event = ?"
        return self.database.row(query, (series, event))[0]  # type: ignore[index,no-any-return]

    def put_snapshot(self, series: int, event: int, state: bytes) -> None:
        """Write a snapshot."""
        self.database.execute(
            "INSERT INTO snapshots VALUES (?, ?, ?) ON CONFLICT (series, event) DO UPDATE SET state = excluded.state",
            (series, event, state),
        )
