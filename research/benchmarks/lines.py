"""Lines of a benchmark: measured numbers with targets, as text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """Measured number; `sense` compares it with the target, `form` is the format of both."""

    case: str
    what: str
    value: float
    target: float | None = None
    sense: str = "<="
    form: str = ".4f"
    note: str = ""

    @property
    def verdict(self) -> str:
        """Verdict "ok" or "MISSED"; empty without a target.

        >>> Line("a", "b", 2.0, 1.0).verdict, Line("a", "b", math.nan, 1.0).verdict, Line("a", "b", 1.0, 1.0).verdict
        ('MISSED', 'MISSED', 'ok')
        """
        if self.target is None:
            return ""
        reached = self.value <= self.target if self.sense == "<=" else self.value >= self.target
        return "ok" if reached and math.isfinite(self.value) else "MISSED"

    def __str__(self) -> str:
        goal = "" if self.target is None else f"{self.sense} {self.target:{self.form}}"
        value = f"{self.value:{self.form}}"
        return f"  {self.case:<38}{self.what:<34}{value:>12}  {goal:<12}{self.verdict:<8}{self.note}".rstrip()


@dataclass(frozen=True)
class Remark:
    """Sentence between the lines."""

    text: str

    def __str__(self) -> str:
        return f"  {self.text}"


Lines = Iterator[Line | Remark]
