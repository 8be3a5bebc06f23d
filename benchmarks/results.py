"""What a benchmark says: one measured number a line, with its target if it has one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Line:
    """A measured number; ``sense`` says how it is compared with the target, ``form`` how both are printed."""

    case: str
    what: str
    value: float
    target: float | None = None
    sense: str = "<="
    form: str = ".4f"
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        if not math.isfinite(self.value):
            return "MISSED"
        reached = {
            "<": self.value < self.target,
            "<=": self.value <= self.target,
            ">=": self.value >= self.target,
            "=": self.value == self.target,
        }[self.sense]
        return "ok" if reached else "MISSED"

    @property
    def goal(self) -> str:
        return "" if self.target is None else f"{self.sense} {self.target:{self.form}}"


@dataclass(frozen=True)
class Remark:
    """A sentence between the lines."""

    text: str


WIDTHS = (38, 34, 12, 12, 8)


def as_text(line: Line | Remark) -> str:
    if isinstance(line, Remark):
        return f"  {line.text}"
    case, what, value, goal, verdict = WIDTHS
    shown = f"{line.value:{line.form}}"
    row = f"  {line.case:<{case}}{line.what:<{what}}{shown:>{value}}  {line.goal:<{goal}}{line.verdict:<{verdict}}"
    return f"{row}{line.note}".rstrip()


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(max(value, 1e-12)) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def write(path: str, sections: dict[str, list[Line | Remark]]) -> None:
    """The numbers as JSON or, if the name ends in .md, as tables; JSON keeps what it has of other sections."""
    if Path(path).suffix == ".md":
        text = "\n".join(_markdown(title, lines) for title, lines in sections.items())
    else:
        before = json.loads(Path(path).read_text(encoding="utf-8")) if Path(path).is_file() else {}
        plain = {
            title: [asdict(line) | ({"verdict": line.verdict} if isinstance(line, Line) else {}) for line in lines]
            for title, lines in sections.items()
        }
        text = json.dumps(before | plain, indent=1) + "\n"
    Path(path).write_text(text, encoding="utf-8")


def read(path: Path) -> dict[tuple[str, str], float]:
    """The numbers of a JSON file, by case and measure."""
    sections = json.loads(path.read_text(encoding="utf-8"))
    return {
        (line["case"], line["what"]): line["value"] for lines in sections.values() for line in lines if "case" in line
    }


def _markdown(title: str, lines: list[Line | Remark]) -> str:
    rows = [f"## {title}", ""]
    rows += [f"{line.text}\n" for line in lines if isinstance(line, Remark)]
    rows += ["| case | measure | value | target | | |", "|---|---|---:|---|---|---|"]
    for line in lines:
        if isinstance(line, Line):
            shown = f"{line.value:{line.form}}"
            rows.append(f"| {line.case} | {line.what} | {shown} | {line.goal} | {line.verdict} | {line.note} |")
    return "\n".join(rows) + "\n"
