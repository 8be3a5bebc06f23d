"""The error of an integration whose library is not installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs(extra: str, *packages: str) -> Iterator[None]:
    """Name the extra that installs a missing package."""
    try:
        yield
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in packages:
            raise
        raise ImportError(f"expected the extra orcast[{extra}] to be installed, got no {package}") from None
