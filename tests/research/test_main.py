"""The command `python -m research`."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from research.__main__ import COMMANDS, main


def fake_command(result: int | BaseException) -> Any:
    def run(options: Any) -> int:
        if isinstance(result, BaseException):
            raise result
        return result + options.more

    return SimpleNamespace(add_arguments=lambda parser: parser.add_argument("--more", type=int, default=0), run=run)


@pytest.mark.parametrize(
    ("result", "code"),
    [(0, 0), (1, 1), (KeyboardInterrupt(), 130), (ValueError("expected a folder, got none"), 2), (OSError("full"), 2)],
)
def test_exit_code(result: int | BaseException, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, COMMANDS["compare"][0], fake_command(result))
    assert main(["compare"]) == code


def test_faults_keep_their_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, COMMANDS["compare"][0], fake_command(ValueError("shapes differ")))
    with pytest.raises(ValueError, match="shapes differ"):
        main(["compare"])
