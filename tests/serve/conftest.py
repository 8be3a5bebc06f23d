"""A service for the tests of a module."""

from collections.abc import Iterator

import pytest

for name in ("msgspec", "prometheus_client", "starlette", "uvicorn"):
    pytest.importorskip(name, reason=f"{name} is not installed")

from serving import Served  # noqa: E402


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service on a new store, which ends by SIGTERM."""
    service = Served(f"sqlite:///{tmp_path_factory.mktemp('serve')}/store.db", "--seconds", "5")
    try:
        yield service
    finally:
        service.kill()
