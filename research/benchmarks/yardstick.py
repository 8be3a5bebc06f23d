"""Stored forecasts of the folder that ORCAST_YARDSTICK or --yardstick names, as streams."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from research.benchmarks.command import YARDSTICK
from research.comparison.catalogue import stored_stream
from research.comparison.stream import Stream
from research.output import optional

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
    table = optional("pandas").read_csv(file, float_precision="round_trip")
    names = [name for name in table if name.startswith("q0")]
    q = np.sort(table[names].to_numpy(), axis=1)
    reference, target = (
        table[name].to_numpy("datetime64[D]").astype(np.int64) for name in ("reference_date", "target_end_date")
    )
    _, place = np.unique(table["location"].astype(str), return_inverse=True)
    horizon, issued, y = table["horizon"].to_numpy() + 1, reference - 4, table["actual"].to_numpy(np.float64)
    order = np.lexsort((horizon, place, issued))
    return Stream(
        file.stem, "weekly-late", np.array([float(name[1:]) for name in names]),
        {"expert": q[order]}, y[order], issued[order], target[order], 0.0, np.inf, place[order],
        horizon[order], clock="D",
    )  # fmt: skip


def ensemble(file: Path) -> Stream:
    """Members of a weather ensemble, whose outcome is known before the next row."""
    table = optional("pandas").read_csv(file, float_precision="round_trip")
    names = [name for name in table if name.startswith("ens")]
    members = np.sort(table[names].to_numpy(), axis=1)
    levels = (np.arange(1, len(names) + 1) - 0.5) / len(names)
    y, t = table["obs"].to_numpy(np.float64), np.arange(len(table))
    return Stream(file.stem, "ensembles", levels, {"ensemble": members}, y, t, t + 1, 0.0, members=members)
