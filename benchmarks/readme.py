"""``python -m benchmarks.readme``: the README's table, from what ``orcast reproduce`` wrote to docs/experiments."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import geometric_mean

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "experiments"
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
# As named in the experiments: methods of experiment 1, and in experiment 2.
METHODS = {
    "the experts themselves": ("expert", None),
    "isotonic recalibration": ("isotonic", "isotonic"),
    "isotonic, last 200 rounds": ("isotonic, last 200", None),
    "adaptive conformal (ACI) per level": ("ACI per level", "ACI per level"),
    "conformal PID": ("conformal PID", "conformal PID"),
    "ORCA, the paper's, rate 0.03": ("ORCA 0.03", "ORCA"),
    "**orcast**, as it comes": ("ours", "ours, the default"),
}


def table() -> str:
    """The table in Markdown."""
    settings, adversary, times = (
        _rows(f"{name}.csv") for name in ("recalibration", "adversarial", "recalibration_time")
    )
    lines = ["| " + " | ".join(HEADER) + " |", "|---" + "|---:" * (len(HEADER) - 1) + "|"]
    for name, (method, attacked) in METHODS.items():
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
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _rows(name: str) -> list[dict[str, str]]:
    with (RESULTS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    print(table())
