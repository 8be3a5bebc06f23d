"""``python -m benchmarks.readme``: the README's tables and sentences with numbers, from result files.

These are what ``orcast reproduce`` wrote to docs/experiments, ``orcast contest`` to docs/contest, and ``python -m
benchmarks harm speed memory panel --out docs/benchmarks.json``.  ``--write`` puts the tables in the place of those in
README.md; sentences are written by hand, and a test compares them.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path
from statistics import geometric_mean

from benchmarks.results import read

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


SHORT = (
    "",
    *(f"{weeks}: {what}" if first else what
      for weeks in ("1 week", "4 weeks")
      for first, what in ((1, "pinball / raw"), (0, "coverage gap"), (0, "worst location"), (0, "better"))),
)  # fmt: skip
SHORT_ROWS = {
    "as given": ", as given",
    "last known outcome with its spread": ", last known outcome",
    "MultiQT": ", MultiQT",
    "**orcast**": "",
}
SHORT_MEASURES = {
    "pinball / raw": ".3f",
    "coverage gap": ".3f",
    "worst series, pinball / raw": ".2f",
    "series better than raw": ".0%",
}


def measured() -> dict[tuple[str, str], float]:
    """What the benchmarks measured, by case and measure."""
    return read(ROOT / "docs" / "benchmarks.json")


def short() -> str:
    """The table of the short weekly panels in Markdown; of the forecasts as given only the gap says something."""
    found = measured()
    lines = ["| " + " | ".join(SHORT) + " |", "|---" + "|---:" * (len(SHORT) - 1) + "|"]
    for name, of in SHORT_ROWS.items():
        cells = []
        for case in ("short, 1 week ahead", "short, 4 weeks ahead"):
            row = {
                what: f"{found[case, what + of]:{form}}"
                for what, form in SHORT_MEASURES.items()
                if (case, what + of) in found
            }
            if name == "as given":
                row = {"pinball / raw": "1", "coverage gap": row["coverage gap"]}
            cells += [row.get(what, "") for what in SHORT_MEASURES]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def sentences() -> tuple[str, ...]:
    """Sentences, or parts of them, that README.md must have, with the numbers of the benchmarks."""
    found = measured()
    ratio = {
        name: found[case, "times one norm.ppf"]
        for name, case in (
            ("default", "default predict + update"),
            ("binary", "Binary default"),
            ("labels", "Labels default, 10 labels"),
        )
    }
    batch = found["compiled batch path", "microseconds a round"]
    state = found["after 5,000 rounds", "saved, bytes"] / 1e3
    pending = found["each waiting round", "bytes"] / 1e3
    hundred, thousand, later = (found[f"perfect expert, first {n}", "pinball lost"] for n in ("100", "1,000", "5,000"))
    narrow = found["band too narrow by a third", "outcomes until 90% holds 87%"]
    one, four = (1.0 - found[f"short, {weeks} ahead", "pinball / raw"] for weeks in ("1 week", "4 weeks"))
    return (
        f"A default `predict` + `update` costs {ratio['default']:.1f} times one `scipy.stats.norm.ppf` call",
        f"with a binary outcome {ratio['binary']:.2f} times, with ten labels {ratio['labels']:.0f} times",
        f"a round of the compiled batch path {batch:.0f} microseconds",
        f"takes {state:.0f} KB however long it runs (and {pending:.0f} KB for each pending forecast)",
        f"loses {thousand:.1%} of pinball loss in its first thousand rounds ({hundred:.1%} in the first hundred, "
        f"{later:.2%} in the first five thousand",
        f"by a third holds 87% in its 90% band after {narrow:.0f} outcomes",
        f"({four:.0%} of pinball loss on three real panels; {one:.0%} one week ahead)",
    )


def tables() -> tuple[str, ...]:
    """All tables that come from result files."""
    return table(), contest(), short()


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
    print("\n\n".join((*tables(), "\n".join(sentences()))))
