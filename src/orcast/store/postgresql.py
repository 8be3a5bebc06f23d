"""PostgreSQL, for several processes and machines: tables in the schema `orcast` of a database."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from orcast.locks import PAUSE
from orcast.store.database import PATIENCE, SCHEMA, TABLES, Conflict, Database

try:
    import psycopg
    from psycopg import conninfo, errors, pq
except ImportError as reason:  # pragma: no cover
    raise ImportError("expected psycopg for postgresql://, got none: pip install 'orcast[postgresql]'") from reason

# Types of the columns.
TYPES = (
    ("INTEGER PRIMARY KEY", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    ("INTEGER", "BIGINT"),
    ("BLOB", "BYTEA"),
)
# Number of the lock that a process holds while it makes the tables.
LOCK = int.from_bytes(b"orca", "big")
# Transactions that are repeated.
AGAIN = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation)
# What a server that is being started does not say.
FINAL = ("does not exist", "authentication failed", "could not translate host name", "no password supplied")
# Seconds in which a connection may be refused when a store is opened.
FIRST_PATIENCE = 3.0
UNWRITABLE = (errors.DiskFull, errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction)


class PostgreSQL(Database):
    """A connection to a server, which is made again when it breaks."""

    for_update = " FOR UPDATE"

    def __init__(self, url: str) -> None:
        try:
            self._options = conninfo.conninfo_to_dict(url)
        except psycopg.Error as reason:
            raise ValueError(f"expected postgresql://USER@HOST/DATABASE, got another URL ({reason})") from None
        # without the password
        self.name = "postgresql://{host}:{port}/{dbname}".format(
            **{"host": "", "port": 5432, "dbname": "", **self._options}
        )
        self._server: psycopg.Connection[Any] | None = None
        self._transactions = 0
        self._connect()
        with self.transaction():
            self.execute("SELECT pg_advisory_xact_lock(?)", (LOCK,))
            if self.row("SELECT to_regclass('orcast.about')") == (None,):
                for statement in ("CREATE SCHEMA IF NOT EXISTS orcast", *TABLES):
                    self.execute(_typed(statement))
                self.execute("INSERT INTO about VALUES ('schema', ?, '')", (SCHEMA,))
        found = self.row("SELECT version FROM about WHERE name = 'schema'")
        self.check_schema(None if found is None else found[0])

    def _connect(self) -> None:
        start = time.monotonic()
        while True:
            try:
                options: Any = {**self._options, "options": "-c search_path=orcast"}
                self._server = psycopg.connect(**options, autocommit=True, connect_timeout=int(PATIENCE))
                return
            except psycopg.OperationalError as reason:
                # a server that was there before is being restarted
                patience = FIRST_PATIENCE if self._server is None and "refused" in str(reason) else PATIENCE
                if any(text in str(reason) for text in FINAL) or time.monotonic() - start > patience:
                    raise OSError(f"expected a server that answers, got {_told(reason)}: {self.name}") from None
                time.sleep(PAUSE)

    def repair(self) -> None:
        """Connect again if the connection broke."""
        if self._server is not None and self._server.closed:
            self._connect()

    @property
    def within(self) -> bool:
        """True within a transaction."""
        return self._server is not None and self._server.info.transaction_status != pq.TransactionStatus.IDLE

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit the changes of the block, or none of them if it raises."""
        assert self._server is not None
        try:
            if self.within:  # whose end was interrupted
                self._server.rollback()
            with self._server.transaction():
                yield
        except AGAIN as reason:
            raise Conflict(_told(reason)) from reason
        except UNWRITABLE as reason:
            raise OSError(f"expected a store that can be written, got {_told(reason)}: {self.name}") from reason
        except (psycopg.OperationalError, psycopg.InterfaceError) as reason:
            raise Conflict(_told(reason)) from reason
        except psycopg.Error as reason:
            raise ValueError(f"expected an intact store, got {_told(reason)}: {self.name}") from reason

    def foreign(self) -> int:
        """Number of this transaction: others may always have written."""
        self._transactions += 1
        return self._transactions

    def execute(self, query: str, parameters: Sequence[Any] = ()) -> Any:
        """Run a statement; returns a cursor."""
        assert self._server is not None
        return self._server.execute(_placed(query), parameters, binary=True)

    def execute_many(self, query: str, parameters: Iterable[Sequence[Any]]) -> int:
        """Run a statement for each of several rows of parameters; returns how many rows it changed."""
        assert self._server is not None
        with self._server.cursor() as cursor:
            cursor.executemany(_placed(query), parameters)
            return cursor.rowcount

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        if self._server is not None:
            self._server.close()


@cache
def _placed(query: str) -> Any:
    """Query with the placeholders of psycopg."""
    return query.replace("?", "%s")


def _typed(statement: str) -> str:
    """Statement with the types of PostgreSQL."""
    for plain, own in TYPES:
        statement = statement.replace(plain, own)
    return statement


def _told(reason: Exception) -> str:
    """First line of an error."""
    return (str(reason).strip() or type(reason).__name__).splitlines()[0]
