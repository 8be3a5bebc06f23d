"""Panels for the tests: random frames of every form, and the slow twin that recalibrates them row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import orcast as oc
from orcast.residuals import Residuals

LEVELS = (0.1, 0.5, 0.9)
FORMS = ("quantiles", "normal", "members", "point", "binary", "labels")
LABELS = ("home", "draw", "away")
# Endings of the columns that are no forecasts.
BESIDE = ("holds", "promised", "miscalibration", "status", "alarm")


@dataclass(frozen=True)
class Plan:
    """What a random panel is like."""

    seed: int
    form: str = "quantiles"
    series: int = 2
    steps: int = 8
    horizons: int = 0  # 0: no cutoffs
    stride: int = 1  # from cutoff to cutoff
    holes: float = 0.0  # outcomes that are missing
    gaps: float = 0.0  # forecasts that are missing
    strays: float = 0.0  # outcomes beyond the bounds of 0 and 100
    models: int = 1


def panel(plan: Plan) -> pd.DataFrame:
    """A frame with columns unique_id, ds, y, perhaps cutoff, and forecasts; series begin and end when they like."""
    rng = np.random.default_rng(plan.seed)
    rows: list[dict[str, Any]] = []
    for s in range(plan.series):
        first = int(rng.integers(0, 3)) if s else 0
        last = plan.steps - (int(rng.integers(0, 3)) if s else 0)
        outcomes = {t: _outcome(plan, rng) for t in range(plan.steps + plan.horizons + 1)}
        if not plan.horizons:
            named = ({"unique_id": f"s{s}", "ds": t, "y": outcomes[t]} for t in range(first, last))
            rows.extend({**row, **_forecast(plan, rng)} for row in named)
            continue
        for c in range(first, last, plan.stride):
            for h in range(1, plan.horizons + 1):
                row = {"unique_id": f"s{s}", "ds": c + h, "cutoff": c, "y": outcomes[c + h]}
                rows.append({**row, **_forecast(plan, rng)})
    return pd.DataFrame(rows)


def _outcome(plan: Plan, rng: np.random.Generator) -> Any:
    missing, stray, u = rng.random() < plan.holes, rng.random() < plan.strays, rng.random()
    if plan.form == "labels":
        return None if missing else LABELS[int(3 * u)]
    if plan.form == "binary":
        return np.nan if missing else float(u < 0.4)
    return np.nan if missing else 150.0 if stray else 100.0 * u


def _forecast(plan: Plan, rng: np.random.Generator) -> dict[str, float]:
    found: dict[str, float] = {}
    for m in range(plan.models):
        own = _columns(plan.form, rng, f"M{m}")
        if rng.random() < plan.gaps:
            own[sorted(own)[int(rng.integers(len(own)))]] = np.nan
            if plan.form in ("members", "quantiles"):
                own = dict.fromkeys(own, np.nan)
        found.update(own)
    return found


def _columns(form: str, rng: np.random.Generator, m: str) -> dict[str, float]:
    centre, width = rng.uniform(20.0, 80.0), rng.uniform(1.0, 20.0)
    if form == "quantiles":
        return {f"{m}-lo-80": centre - width, m: centre, f"{m}-hi-80": centre + 1.5 * width}
    if form == "normal":
        return {f"{m}_mean": centre, f"{m}_std": width}
    if form == "members":
        return {f"{m}_member_{i}": v for i, v in enumerate(rng.normal(centre, width, 4), start=1)}
    if form == "point":
        return {m: centre}
    if form == "binary":
        return {f"{m}_p": rng.uniform(0.05, 0.95)}
    return {f"{m}_p_{label}": p for label, p in zip(LABELS, rng.dirichlet(np.ones(3)), strict=True)}


def inputs(form: str, m: str) -> list[str]:
    return list(_columns(form, np.random.default_rng(0), m))


def outputs(frame: Any, m: str = "M0") -> list[str]:
    """Columns that came out for a model."""
    return [name for name in frame.columns if str(name).startswith(f"{m}_orcast")]


# --- the slow twin


def twin(frame: pd.DataFrame, form: str, m: str, *, low: float | None = None, high: float | None = None) -> Any:
    """What comes out for a model, row by row with a `Recalibrator` for each series and horizon.

    A dict from the label of a row to its answers, whether the certificate holds, and whether its outcome was used.
    """
    told: dict[Any, tuple[list[float], bool]] = {}
    ranks = frame.groupby(["unique_id", "cutoff"])["ds"].rank() if "cutoff" in frame else pd.Series(1, frame.index)
    for _, stream in frame.assign(h=ranks).groupby(["unique_id", "h"]):
        recal = oc.Recalibrator(_space(form, low, high), outside="raise")
        waiting: dict[Any, Any] = {}
        residuals = Residuals(10**9)
        over = 0  # the newest round that is over
        order = ["cutoff", "ds"] if "cutoff" in frame else ["ds"]
        for label, row in stream.sort_values(order).iterrows():
            known = [(w["ds"], i) for i, w in waiting.items() if not _missing(w["y"])]
            for _, i in sorted((ds, i) for ds, i in known if "cutoff" not in frame or ds <= row["cutoff"]):
                was = waiting.pop(i)
                over = max(over, recal.rounds.find(i).issued)
                if form in ("binary", "labels") or (low or -1e9) <= was["y"] <= (high or 1e9):
                    recal.update(was["y"], id=i)
                    if form == "point":
                        residuals.add(was["y"] - was[m])
                else:
                    recal.drop(i)
            if any(_missing(row[name]) for name in inputs(form, m)):
                continue
            for i in list(waiting):
                entry, lag = recal.rounds.find(i), recal.rounds.usual_lag
                if entry.issued < over and lag is not None and recal.rounds.issued - entry.issued > 2.0 * lag + 2.0:
                    recal.drop(i)
                    waiting.pop(i)
            p = recal.predict(_read(form, m, row, residuals, low, high), id=label)
            told[label] = _answers(form, m, row, p), p.certificate.holds
            waiting[label] = row
    return told


def _missing(value: Any) -> bool:
    return value is None or value != value


def _space(form: str, low: float | None, high: float | None) -> oc.spaces.Space:
    if form == "binary":
        return oc.Binary()
    if form == "labels":
        return oc.Labels(LABELS)
    if low is None:
        return oc.Line()
    return oc.HalfLine(low) if high is None else oc.Interval(low, high)


def _read(form: str, m: str, row: Any, residuals: Residuals, low: float | None, high: float | None) -> Any:
    values = [float(row[name]) for name in inputs(form, m)]
    if form == "quantiles":
        return oc.Quantiles(LEVELS, values)
    if form == "normal":
        return oc.Normal(*values)
    if form == "members":
        return oc.Ensemble(values)
    if form == "point":
        return oc.Normal(values[0], residuals.scale(values[0], _space(form, low, high)))
    return values[0] if form == "binary" else values


def _answers(form: str, m: str, row: Any, p: Any) -> list[float]:
    if form == "quantiles":
        return p.quantile(LEVELS).tolist()
    if form == "normal":
        return list(p.to_normal())
    if form == "members":
        members = [row[name] for name in inputs(form, m)]
        values = p.quantile((np.arange(4) + 0.5) / 4)
        return values[np.argsort(np.argsort(members, kind="stable"))].tolist()
    if form == "point":
        return p.quantile([0.025, 0.1, 0.5, 0.9, 0.975]).tolist()
    return [p.probability()] if form == "binary" else p.mass.tolist()
