"""Plain technical English: the private dialect of early versions stays out of code, docs and tests."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "docs", "examples", "tests", "research")
KINDS = {".py", ".pyi", ".pxd", ".md"}
DIALECT = (
    *("whence", "whoever", "one of a kind", "beyond chance", "some fifty", "far ahead", "two speeds", "if need be"),
    *("debts?", "owed", "heard", "hears?", "listens?", "nobody", "taught", "teach(es)?", "booked", "coins?"),
    *(
        "given up",
        "anew",
        "so many(?! that)",
        "so that none",
        "raw one",
        "experts? as given",
        "one(?: clear)? sentence",
    ),
    *("players?", "(?:is|are|was|were) played", "(?:it|that|which|they|he) plays?", "played forecast"),
    *("what (?:is|was) (?:promised|said|told|called|counted)", "(?:is|are|was|were) told", "the user knows"),
    *("keeps? (?:its|their|one's) word", "has a fault", "leagues? table", "for whom", "of one's own", "says? so"),
    *("(?:nothing|payoffs?|contexts?|it|that) looks? at", "Nature (?:can|may|must|picks|chooses)"),
)
WORDS = re.compile(rf"\b(?:{'|'.join(DIALECT)})\b")
# Files and folders that still have such words; each is removed here once it is clean.
TO_DO: tuple[str, ...] = ()


def texts() -> Iterator[tuple[str, str]]:
    """Path and text of README and of all sources, without this file."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in KINDS]
    for path in [ROOT / "README.md", *sorted(found)]:
        if path != Path(__file__).resolve():
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def hits(text: str) -> list[str]:
    return [f"{number}: {line.strip()}" for number, line in enumerate(text.splitlines(), 1) if WORDS.search(line)]


@pytest.mark.parametrize("sentence", ["what is owed", "nobody hears it", "an expert as given", "the round is played"])
def test_dialect_is_found(sentence: str) -> None:
    assert hits(sentence)


def test_no_dialect() -> None:
    found = {name: lines for name, text in texts() if (lines := hits(text))}
    assert {name: lines for name, lines in found.items() if not name.startswith(TO_DO)} == {}
