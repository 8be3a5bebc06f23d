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
    """Return whether a table of a page has columns of a file, with all rows."""
    if not set(table[0]) <= set(file[0]) or len(table) != len(file):
        return False
    places = [file[0].index(column) for column in table[0]]
    return all(
        same(a, full[i])
        for shown, full in zip(table[1:], file[1:], strict=True)
        for a, i in zip(shown, places, strict=True)
    )


def strangers(page: str, folder: Path) -> tuple[list[str], list[list[str]]]:
    """Return the files of a folder that a page does not link, and the headers of tables that are of no file."""
    files = {path.name: read(path) for path in sorted(folder.glob("*.csv"))}
    below = page.split(MARK)[1]
    unseen = [name for name in files if f"/{name})" not in below and f"]({name})" not in below]
    return unseen, [table[0] for table in tables(below) if not any(is_of(table, file) for file in files.values())]
