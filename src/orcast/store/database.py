"""Databases of a store: what SQLite and PostgreSQL have in common."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

Row = tuple[Any, ...]
# Version of the tables.
SCHEMA = 1
# Seconds to wait for another process, or for a server that is being restarted.
PATIENCE = 30.0


# An unnamed round that a later one follows has no id.  Times are microseconds since 1970, in UTC.
TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, version INTEGER NOT NULL, value BLOB NOT NULL);
CREATE TABLE options (number INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, options TEXT NOT NULL);
CREATE TABLE series (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, options INTEGER NOT NULL,
    version INTEGER NOT NULL, trimmed INTEGER NOT NULL);
CREATE TABLE states (series INTEGER NOT NULL UNIQUE, state BLOB NOT NULL);
CREATE TABLE rounds (
    series INTEGER NOT NULL, id TEXT, opened INTEGER NOT NULL, closed INTEGER NOT NULL, horizon TEXT,
    issued INTEGER NOT NULL, target INTEGER NOT NULL, x TEXT, published TEXT NOT NULL,
    base BLOB NOT NULL, forecast BLOB NOT NULL, record BLOB, y TEXT, known INTEGER, guarantee TEXT,
    revisions INTEGER NOT NULL, checksum INTEGER NOT NULL);
CREATE UNIQUE INDEX round_id ON rounds (series, id);
CREATE INDEX round_event ON rounds (series, closed);
CREATE INDEX round_target ON rounds (series, target);
CREATE INDEX round_time ON rounds (target);
CREATE TABLE revisions (
    series INTEGER NOT NULL, opened INTEGER NOT NULL, event INTEGER NOT NULL, y TEXT NOT NULL, known INTEGER NOT NULL,
    PRIMARY KEY (series, opened, event));
CREATE TABLE snapshots (
    series INTEGER NOT NULL, event INTEGER NOT NULL, state BLOB NOT NULL, PRIMARY KEY (series, event))
""".strip().split(";\n")


class Conflict(Exception):
    """Another process changed the same rows first, or the connection broke: the transaction can be repeated."""


class Database(ABC):
    """A connection.  Queries have a `?` for each parameter; errors are one line with the `name` of the database."""

    name: str
    for_update = ""  # ends a query whose rows this transaction will change

    @property
    @abstractmethod
    def within(self) -> bool:
        """True within a transaction."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Commit the changes of the block, or none of them if it raises."""

    @abstractmethod
    def foreign(self) -> int:
        """Number that differs between two transactions if others may have written between them."""

    @abstractmethod
    def execute(self, query: str, parameters: Sequence[Any] = ()) -> Any:
        """Run a statement; returns a cursor."""

    @abstractmethod
    def execute_many(self, query: str, parameters: Iterable[Sequence[Any]]) -> int:
        """Run a statement for each of several rows of parameters; returns how many rows it changed."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection; a second call does nothing."""

    def rows(self, query: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Rows of a query."""
        return self.execute(query, parameters).fetchall()  # type: ignore[no-any-return]

    def row(self, query: str, parameters: Sequence[Any] = ()) -> Row | None:
        """First row of a query."""
        return self.execute(query, parameters).fetchone()  # type: ignore[no-any-return]

    def repair(self) -> None:  # noqa: B027
        """Connect again if the connection broke."""

    def check_schema(self, found: object) -> None:
        """Refuse tables of another version."""
        if found != SCHEMA:
            raise ValueError(f"expected a store of format {SCHEMA}, got format {found}: {self.name}")


def connect(url: str | os.PathLike[str] | None, *, sync: bool) -> Database:
    """Open a database by its URL or path; None is a temporary one."""
    text = None if url is None else os.fspath(url)
    if text is not None and text.startswith(("postgresql://", "postgres://")):
        from orcast.store.postgresql import PostgreSQL

        return PostgreSQL(text)
    from orcast.store.sqlite import SQLite

    if text is None or "://" not in text:
        return SQLite(text, sync=sync)
    scheme, _, rest = text.partition("://")
    if scheme != "sqlite" or not rest.startswith("/") or len(rest) < 2:
        raise ValueError(f"expected sqlite:///FILE or postgresql://HOST/DATABASE as store, got {scheme}://...")
    return SQLite(rest[1:], sync=sync)
