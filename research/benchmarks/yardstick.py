"""Stored forecasts of the folder that ORCAST_YARDSTICK or --yardstick names, as streams."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np

from research.benchmarks.command import YARDSTICK
from research.comparison.catalogue import stored_stream
from research.comparison.stream import Stream

NEW_YEAR = 24 * 20_454  # hours from 1970 to 2026


def folder() -> Path | None:
    """Folder of stored forecasts, from the environment."""
    named = os.environ.get(YARDSTICK)
    if named and not Path(named).is_dir():
        raise ValueError(f"expected a folder as --yardstick or in {YARDSTICK}, got {named!r}")
    return Path(named) if named else None


def one_step(place: Path, *, binary: bool = False) -> list[Stream]:
    """One-step forecasts of quantities, or of events."""
    files = sorted((place / "streams").glob("*.npz"))
    return [stored_stream(str(file), None) for file in files if file.name.startswith("bin_") == binary]


def multi(file: Path) -> Stream:
    """Forecasts of one series at several horizons; row i of each array is issued at time i."""
    with np.load(file, allow_pickle=False) as arrays:
        q, y, levels = (np.asarray(arrays[name], dtype=np.float64) for name in ("Q", "Y", "levels"))
    steps, horizons, count = q.shape
    issued, ahead = (grid.ravel() for grid in np.meshgrid(np.arange(steps), np.arange(1, horizons + 1), indexing="ij"))
    return Stream(
        file.stem, "multi-step", levels.round(2),
        {"LightGBM": np.sort(q.reshape(-1, count), axis=1)}, y.ravel(), NEW_YEAR + issued, NEW_YEAR + issued + ahead,
        horizon=ahead, clock="h",
    )  # fmt: skip


def panel(file: Path) -> Stream:
    """Weekly forecasts of many places (CDC FluSight forecast hub); the week before the reference date is known."""
    with file.open(encoding="utf-8", newline="") as source:
        rows = list(csv.DictReader(source))
    names = [name for name in rows[0] if name.startswith("q0")]
    q = np.sort([[float(row[name]) for name in names] for row in rows], axis=1)
    day = {
        name: np.array([row[name] for row in rows], "datetime64[D]").astype(np.int64)
        for name in ("reference_date", "target_end_date")
    }
    _, place = np.unique([row["location"] for row in rows], return_inverse=True)
    horizon = np.array([int(row["horizon"]) for row in rows]) + 1
    issued = day["reference_date"] - 4
    order = np.lexsort((horizon, place, issued))
    return Stream(
        file.stem, "weekly-late", np.array([float(name[1:]) for name in names]),
        {"expert": q[order]}, np.array([float(row["actual"]) for row in rows])[order], issued[order],
        day["target_end_date"][order], 0.0, np.inf, place[order], horizon[order], clock="D",
    )  # fmt: skip


def ensemble(file: Path) -> Stream:
    """Members of a weather ensemble, whose outcome is known before the next row."""
    with file.open(encoding="utf-8", newline="") as source:
        rows = list(csv.DictReader(source))
    names = [name for name in rows[0] if name.startswith("ens")]
    members = np.sort([[float(row[name]) for name in names] for row in rows], axis=1)
    levels = (np.arange(1, len(names) + 1) - 0.5) / len(names)
    y, t = np.array([float(row["obs"]) for row in rows]), np.arange(len(rows))
    return Stream(file.stem, "ensembles", levels, {"ensemble": members}, y, t, t + 1, 0.0, members=members)
