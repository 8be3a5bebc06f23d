"""``python -m benchmarks.readme``: the README's tables, from what ``orcast reproduce`` wrote to docs/experiments and
``orcast contest`` to docs/contest.

``python -m benchmarks.readme --write`` puts them in the place of those in README.md.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path
from statistics import geometric_mean

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "experiments"
HEADER = (
    "",
    "QCE, mean of 8",
    "QCE, worst of 8",
    "QCE, worst 200 rounds",
    "CRPS / expert's, mean",
    "worst",
    "QCE against an adversary",
    "ms a round",
)
# As named in the experiments: methods of experiment 1, and in experiment 2. ORCA's rate is the one that the rule chose.
METHODS = {
    "the experts themselves": ("expert", None),
    "last outcome with its spread": ("last outcome", None),
    "isotonic recalibration": ("isotonic", "isotonic"),
    "isotonic, last 200 rounds": ("isotonic, last 200", None),
    "adaptive conformal (ACI) per level": ("ACI per level", "ACI per level"),
    "conformal PID": ("conformal PID", "conformal PID"),
    "ORCA, the paper's, rate {rate}": ("ORCA {rate}", "ORCA"),
    "**orcast**, as it comes": ("ours", "ours, the default"),
}


def table() -> str:
    """The table in Markdown."""
    settings, adversary, times = (
        _rows(f"{name}.csv") for name in ("recalibration", "adversarial", "recalibration_time")
    )
    rate, against = (_rate(f"{name}_rule.csv") for name in ("recalibration", "adversarial"))
    rates = rate if rate == against else f"{rate} ({against} against the adversary)"
    lines = ["| " + " | ".join(HEADER) + " |", "|---" + "|---:" * (len(HEADER) - 1) + "|"]
    for name, (recalibrated, attacked) in METHODS.items():
        method = recalibrated.format(rate=rate)
        mine = [row for row in settings if row["method"] == method]
        errors, scores = ([float(row[what]) for row in mine] for what in ("QCE", "CRPS / expert's"))
        under_attack = [float(row["QCE, t = 1,000"]) for row in adversary if row["method"] == attacked]
        taken = [float(row["ms a round"]) for row in times if row["method"] == method]
        cells = [
            f"{geometric_mean(errors):.4f}",
            f"{max(errors):.4f}",
            f"{max(float(row['worst QCE']) for row in mine):.2f}",
            f"{geometric_mean(scores):.2f}",
            f"{max(scores):.2f}",
            *(f"{error:.2f}" for error in under_attack or ()),
            *([] if under_attack else [""]),
            *(f"{each:.2f}" for each in taken or ()),
            *([] if taken else [""]),
        ]
        lines.append(f"| {name.format(rate=rates)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _rate(rule: str) -> str:
    return next(row["rate"] for row in _rows(rule) if row["chosen"])


def _rows(name: str) -> list[dict[str, str]]:
    with (RESULTS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def contest() -> str:
    """The table of the contest in Markdown."""
    with (ROOT / "docs" / "contest" / "summary.csv").open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    rule = ["---", *("---:" for _ in header[1:])]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def tables() -> tuple[str, str]:
    """All tables that come from result files."""
    return table(), contest()


def shown(readme: str, of: str) -> str:
    """The table that README.md shows, which has the same header."""
    found = re.search(rf"^{re.escape(of.splitlines()[0])}\n(?:\|.*\n)+", readme, re.MULTILINE)
    if found is None:
        raise ValueError("expected a table with the header of benchmarks.readme in README.md, got none")
    return found[0].rstrip("\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        page = ROOT / "README.md"
        text = page.read_text(encoding="utf-8")
        for each in tables():
            text = text.replace(shown(text, each), each)
        page.write_text(text, encoding="utf-8")
    print("\n\n".join(tables()))
