"""The file of frozen answers: one array for each case and name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

PATH = Path(__file__).with_name("answers.npz")

Answers = dict[str, Any]


def arrays(case: str, answers: Mapping[str, Any]) -> Answers:
    """Convert the answers of a case to float, bool, int or str arrays, keyed by "case/name"."""
    found = {f"{case}/{name}": np.asarray(value) for name, value in answers.items()}
    for key, value in found.items():
        if value.dtype.kind not in "fbiuU" or value.size == 0:
            raise ValueError(f"expected a filled array of numbers or texts, got {value.dtype} {value.shape} for {key}")
    if not found:
        raise ValueError(f"expected answers, got none for {case}")
    return found


def read(case: str) -> Answers:
    """Read the frozen answers of a case."""
    with np.load(PATH, allow_pickle=False) as file:
        return {key: file[key] for key in file.files if key.startswith(f"{case}/")}


def write(new: Mapping[str, Answers], cases: list[str]) -> None:
    """Replace the answers of some cases, keep those of the other `cases`, and drop all others."""
    kept = {case: new[case] if case in new else read(case) for case in cases}
    np.savez_compressed(PATH, **{key: value for case in kept.values() for key, value in case.items()})
