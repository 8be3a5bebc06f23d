"""What the experiments found, in sentences: each number of them is read from the files that the experiments wrote."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from orcast.paper.experiments.methods import OURS
from orcast.paper.experiments.recalibration_runs import EXPERT, LAST

__all__ = ["summary"]

FileRow = Mapping[str, str]


def summary(folder: str | Path) -> str:
    """The section of the page that says what came out, from the files of all three experiments in a folder."""

    def rows(name: str) -> list[FileRow]:
        with (Path(folder) / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    settings = rows("recalibration")
    parts = (
        _claims(rows("claims")),
        _calibration(settings, rows("recalibration_chance")[0]),
        _accuracy(settings),
        _adversary(rows("adversarial"), rows("adversarial_rule")),
        _decisions(rows("windfarm"), rows("windfarm_losses")),
    )
    return "\n\n".join(["## In short", *parts])


def _claims(claims: Sequence[FileRow]) -> str:
    tested = [row for row in claims if row["reproduces"] in ("yes", "no")]
    missed = [row for row in tested if row["reproduces"] == "no"]
    said = f"**The paper's claims.** {len(tested) - len(missed)} of {len(tested)} that were tested reproduce."
    if not missed:
        return said
    told = [f"- {row['section']}: {row['claim of the paper']}. Here: {row['here']}." for row in missed]
    return "\n".join([f"{said} These do not:", "", *told])


def _calibration(rows: Sequence[FileRow], perfect: FileRow) -> str:
    """QCE of ours, beside chance, and where another method is below it."""
    ours = {_place(row): float(row["QCE"]) for row in rows if row["method"] == OURS}
    below: dict[str, list[str]] = {}
    for row in rows:
        if row["method"] != OURS and float(row["QCE"]) < ours[_place(row)]:
            below.setdefault(_place(row), []).append(f"{row['method']} {float(row['QCE']):.4f}")
    where = "; ".join(f"{place} (ours {ours[place]:.4f}): {', '.join(names)}" for place, names in below.items())
    holds = [100.0 * float(row["90% holds"]) for row in rows if row["method"] == OURS]
    return (
        f"**Ours in experiment 1.** QCE is {min(ours.values()):.4f} to {max(ours.values()):.4f} in {len(ours)} "
        f"settings; a perfect forecaster of {int(perfect['rounds']):,} rounds has {float(perfect['QCE, mean']):.4f} in "
        "the mean. "
        + (f"A lower one, ORCA's at each rate included, is found on {where}. " if below else "None has a lower one. ")
        + f"The 90% bands hold {min(holds):.1f}% to {max(holds):.1f}% of the outcomes."
    )


def _accuracy(rows: Sequence[FileRow]) -> str:
    """CRPS of ours against the expert, and against the last outcome, which is what most of it may be owed to."""
    crps = {(_place(row), row["method"]): float(row["CRPS"]) for row in rows}
    places = list(dict.fromkeys(place for place, _ in crps))
    relative = [float(row["CRPS / expert's"]) for row in rows if row["method"] == OURS]
    last = [crps[place, LAST] / crps[place, EXPERT] for place in places]
    beside = {place: crps[place, OURS] / crps[place, LAST] for place in places}
    better = [place for place, ratio in beside.items() if ratio < 1.0]
    worse = ", ".join(place for place in places if place not in better)
    return (
        f"CRPS is {min(relative):.3f} to {max(relative):.3f} times the expert's. Knowledge of the last outcome is part "
        f"of this: that alone, with its spread and no expert, has {min(last):.3f} to {max(last):.3f} times the "
        f"expert's. Ours has {min(beside.values()):.3f} to {max(beside.values()):.3f} times the CRPS of last outcome, "
        f"and is below it in {len(better)} of {len(places)} settings" + (f", not on {worse}." if worse else ".")
    )


def _adversary(rows: Sequence[FileRow], rates: Sequence[FileRow]) -> str:
    """QCE against Nature in the forecast's own cells."""
    end = [column for column in rows[0] if column.startswith("QCE")][-1]
    at = {row["method"]: float(row[end]) for row in rows}
    largest = {row["method"]: float(row["settled / promised, largest"]) for row in rows if row["promised"]}
    rate = next(row["rate"] for row in rates if row["chosen"])
    default = "ours, the default"
    compared = "above" if at[default] > at["ORCA"] else "below"
    return (
        f"**Experiment 2.** Against cells of its own making the default ends with a {end.replace(', t', ' at t')} of "
        f"{at[default]:.4f}, {compared} the {at['ORCA']:.4f} of ORCA (rate {rate}): the default answers for moments "
        f"and regret too. With quantiles alone it has {at['ours, quantiles alone']:.4f}, the exact oracle "
        f"{at['TwoCells, exact']:.4f}, isotonic recalibration {at['isotonic']:.2f}, conformal PID "
        f"{at['conformal PID']:.2f}, ACI per level {at['ACI per level']:.2f}. What the default settles is at most "
        f"{largest[default]:.3f} times what it promised, after any round of any run."
    )


def _decisions(changes: Sequence[FileRow], losses: Sequence[FileRow]) -> str:
    """The loss of commitments against the expert's, exact from the losses, intervals from the table of changes."""
    lambdas = list(losses[0])[1:]
    loss = {row["method"]: [float(row[lam]) for lam in lambdas] for row in losses}

    def against_expert(method: str) -> str:
        found = [100.0 * (own / expert - 1.0) for own, expert in zip(loss[method], loss[EXPERT], strict=True)]
        return f"{min(found):+.1f}% to {max(found):+.1f}%"

    sure = {
        row["method"]: [lam.removeprefix("lambda = ") for lam in lambdas if _below_zero(row[lam])] for row in changes
    }
    told = "; ".join(
        f"{method} {against_expert(method)}, beyond chance for lambda: {', '.join(sure[method]) or 'none'}"
        for method in loss
        if method.startswith(OURS)
    )
    return (
        f"**Experiment 3.** Mean loss against the expert's over the lambdas: {told}; last outcome "
        f'{against_expert(LAST)}. "By hour" was chosen after the plain default had no interval below zero.'
    )


def _below_zero(change: str) -> bool:
    """Whether the interval of a change, as the table writes it, is below zero.

    >>> _below_zero("-3.4 [-5.3, -1.5]"), _below_zero("-5.3 [-10.9, +0.5]")
    (True, False)
    """
    return float(change.partition(", ")[2].rstrip("]")) < 0.0


def _place(row: FileRow) -> str:
    return f"{row['series']}/{row['expert']}"
