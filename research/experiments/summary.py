"""Findings of all three experiments in sentences, with numbers from the files that the experiments wrote."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from research.experiments.methods import EXPERT, LAST, OURS

FileRow = Mapping[str, str]


def summary(folder: str | Path) -> str:
    """Section of the page from the files of all three experiments in a folder."""

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
    return "\n\n".join(["## Summary", *parts])


def _claims(claims: Sequence[FileRow]) -> str:
    tested = [row for row in claims if row["reproduces"] in ("yes", "no")]
    missed = [row for row in tested if row["reproduces"] == "no"]
    head = f"**The paper's claims.** {len(tested) - len(missed)} of {len(tested)} tested claims reproduce."
    rows = [f"- {row['section']}: {row['claim of the paper']}. Here: {row['here']}." for row in missed]
    return "\n".join([f"{head} These do not:", "", *rows]) if missed else head


def _place(row: FileRow) -> str:
    return f"{row['series']}/{row['expert']}"


def _calibration(rows: Sequence[FileRow], perfect: FileRow) -> str:
    ours = {_place(row): float(row["QCE"]) for row in rows if row["method"] == OURS}
    below: dict[str, list[str]] = {}
    for row in rows:
        if row["method"] != OURS and float(row["QCE"]) < ours[_place(row)]:
            below.setdefault(_place(row), []).append(f"{row['method']} {float(row['QCE']):.4f}")
    where = "; ".join(f"{place} (ours {ours[place]:.4f}): {', '.join(names)}" for place, names in below.items())
    holds = [100.0 * float(row["90% holds"]) for row in rows if row["method"] == OURS]
    return (
        f"**Experiment 1.** QCE of ours is {min(ours.values()):.4f} to {max(ours.values()):.4f} in {len(ours)} "
        f"settings; a perfect forecaster of {int(perfect['rounds']):,} rounds has a mean of "
        f"{float(perfect['QCE, mean']):.4f}. "
        + (f"Lower ones, ORCA's at each rate included: {where}. " if below else "No method has a lower one. ")
        + f"The 90% intervals contain {min(holds):.1f}% to {max(holds):.1f}% of the outcomes."
    )


def _accuracy(rows: Sequence[FileRow]) -> str:
    crps = {(_place(row), row["method"]): float(row["CRPS"]) for row in rows}
    places = list(dict.fromkeys(place for place, _ in crps))
    relative = [float(row["CRPS / expert's"]) for row in rows if row["method"] == OURS]
    last = [crps[place, LAST] / crps[place, EXPERT] for place in places]
    beside = {place: crps[place, OURS] / crps[place, LAST] for place in places}
    worse = [place for place, ratio in beside.items() if ratio >= 1.0]
    return (
        f"CRPS is {min(relative):.3f} to {max(relative):.3f} times the expert's. Part of this gain is information: the "
        f"last outcome with its spread, without an expert, has {min(last):.3f} to {max(last):.3f} times the expert's. "
        f"Ours has {min(beside.values()):.3f} to {max(beside.values()):.3f} times the CRPS of last outcome, and is "
        f"below it in {len(places) - len(worse)} of {len(places)} settings"
        + (f", not on {', '.join(worse)}." if worse else ".")
    )


def _adversary(rows: Sequence[FileRow], rates: Sequence[FileRow]) -> str:
    end = [column for column in rows[0] if column.startswith("QCE")][-1]
    at = {row["method"]: float(row[end]) for row in rows}
    default = next(row for row in rows if row["method"] == "ours, the default")
    rate = next(row["rate"] for row in rates if row["chosen"])
    return (
        f"**Experiment 2.** Against an adversary that draws in the forecast's own cells the default ends with a "
        f"{end.replace(', t', ' at t')} of {at['ours, the default']:.4f}, ORCA (rate {rate}) with {at['ORCA']:.4f}; "
        "the default also guarantees moments and regret. "
        f"With quantiles alone ours has {at['ours, quantiles alone']:.4f}, the exact oracle "
        f"{at['TwoCells, exact']:.4f}, isotonic recalibration {at['isotonic']:.2f}, conformal PID "
        f"{at['conformal PID']:.2f}, ACI per level {at['ACI per level']:.2f}. The default's settled miscalibration is "
        f"at most {float(default['settled / promised, largest']):.3f} times its bound, after any round of any run."
    )


def _decisions(changes: Sequence[FileRow], losses: Sequence[FileRow]) -> str:
    lambdas = list(losses[0])[1:]
    loss = {row["method"]: [float(row[lam]) for lam in lambdas] for row in losses}

    def against_expert(method: str) -> str:
        found = [100.0 * (own / expert - 1.0) for own, expert in zip(loss[method], loss[EXPERT], strict=True)]
        return f"{min(found):+.1f}% to {max(found):+.1f}%"

    def significant(row: FileRow) -> str:
        # cells are "change [low, high]"
        sure = [lam for lam in lambdas if float(row[lam].partition(", ")[2].rstrip("]")) < 0.0]
        return ", ".join(lam.removeprefix("lambda = ") for lam in sure) or "none"

    found = "; ".join(
        f"{row['method']} {against_expert(row['method'])}, significant for lambda: {significant(row)}"
        for row in changes
        if row["method"].startswith(OURS)
    )
    return (
        f"**Experiment 3.** Mean loss against the expert's over the lambdas: {found}; last outcome "
        f'{against_expert(LAST)}. "By hour" was chosen after the plain default had no interval below zero.'
    )
