"""What `import orcast` brings, and what it must not."""

import subprocess
import sys
from pathlib import Path

import pytest

import orcast


def test_import_is_light() -> None:
    code = "import sys, orcast; print(sorted({'numpy', 'scipy'} & sys.modules.keys()))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("name", orcast.__all__)
def test_public_name_resolves(name: str) -> None:
    assert getattr(orcast, name).__name__.rpartition(".")[2] == {"open": "Store"}.get(name, name)
    assert name in dir(orcast)


def test_the_flat_names_are_few() -> None:
    assert 30 <= len(orcast.__all__) <= 46


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = orcast.Nonsense  # type: ignore[attr-defined]


def test_types_are_shipped() -> None:
    assert (Path(orcast.__file__).parent / "py.typed").exists()
