"""Pages that show results, against the files that hold them."""

from __future__ import annotations

import csv
import re
from pathlib import Path

MARK = "<!-- produced -->"


def read(path: Path) -> list[list[str]]:
    """The rows of a CSV file, its header first."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def tables(page: str) -> list[list[list[str]]]:
    """The rows of each table of a page, its header first; bold and underlined numbers as plain ones."""
    found = []
    for block in re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE):
        plain = re.sub(r"\*\*|</?ins>", "", block)
        lines = [[cell.strip() for cell in line.strip().strip("|").split(" | ")] for line in plain.splitlines()]
        found.append([lines[0], *lines[2:]])
    return found


def same(shown: str, full: str) -> bool:
    """Whether a page shows a number of a file, rounded, or the same words."""
    if shown.strip() == full.strip():
        return True
    text = shown.replace(",", "").rstrip("%")
    try:
        value = float(full) * (100.0 if shown.endswith("%") else 1.0)
        decimals = len(text.split(".")[1]) if "." in text and "e" not in text else 0
        return abs(float(text) - value) <= 0.51 * 10.0**-decimals
    except ValueError:
        return False


def is_of(table: list[list[str]], file: list[list[str]]) -> bool:
    """Whether a table of a page is that of a file."""
    return (
        table[0] == file[0]
        and [len(row) for row in table] == [len(row) for row in file]
        and all(
            same(a, b)
            for shown, full in zip(table[1:], file[1:], strict=True)
            for a, b in zip(shown, full, strict=True)
        )
    )


def strangers(page: str, folder: Path) -> tuple[list[str], list[list[str]]]:
    """The files of a folder that a page does not show as they are, and the headers of tables that are of no file."""
    files = {path.name: read(path) for path in sorted(folder.glob("*.csv"))}
    shown = tables(page.split(MARK)[1])
    unseen = [name for name, file in files.items() if not any(is_of(table, file) for table in shown)]
    return unseen, [table[0] for table in shown if not any(is_of(table, file) for file in files.values())]
