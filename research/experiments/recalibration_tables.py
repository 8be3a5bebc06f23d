"""Tables and claims of experiment 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from research.experiments.methods import EXPERT, LAST, OURS, Claim
from research.experiments.recalibration import BOUND, ORCA, Chance, Plan, Score, Setting, first_half_qce
from research.output import Row, Table, deviation, geometric_mean, mean

TITLES = {
    "gradient-tree": "gradient tree",
    "network": "neural network",
    "hoeffding-tree": "Hoeffding tree",
    "marginal": "marginal",
}
ISOTONIC = "isotonic"

KNEW = (
    "Information: an expert has the 24 values before each forecast and was updated with all earlier ones, the warm-up "
    "included. Last outcome is the normal distribution around the value before, with the root mean square of the last "
    "500 changes as deviation; it has no expert. All other methods start at the first of these forecasts and receive "
    "the expert's forecast and then its outcome. Isotonic recalibration and ACI use the ranks of the outcomes within "
    "the forecasts, conformal PID also the size of the errors, ORCA its cumulative payoffs, ours also the last errors "
    "and the last outcome: part of its gain over the expert is the gain of last outcome."
)


def all_methods(setting: Setting) -> Iterator[tuple[str, Sequence[Score]]]:
    """Every method with its runs in the order of tables: ours last, ORCA by its rates before it."""
    for method, runs in setting.scores.items():
        if method == OURS:
            yield from ((f"ORCA {rate:g}", of_rate) for rate, of_rate in setting.orca.items())
        yield method, runs


def full_table(settings: Sequence[Setting], plan: Plan) -> Table:
    """Every measure of every method in every setting."""
    rows: list[Row] = []
    for setting in settings:
        points = setting.point_smape
        for method, runs in all_methods(setting):
            rows.append(
                {
                    "series": setting.series,
                    "expert": TITLES[setting.learner],
                    "method": method,
                    "runs": len(runs),
                    "QCE": mean(score.qce for score in runs),
                    "QCE sd": deviation([score.qce for score in runs]),
                    "worst QCE": mean(score.worst for score in runs),
                    "SMAPE": mean(score.smape for score in runs),
                    "SMAPE sd": deviation([score.smape for score in runs]),
                    "SMAPE / point's": mean(score.smape / points[r % len(points)] for r, score in enumerate(runs)),
                    "CRPS": mean(score.crps for score in runs),
                    "CRPS / expert's": setting.relative(runs, "crps"),
                    "90% holds": mean(score.holds for score in runs),
                    "90% width": mean(score.width for score in runs),
                }
            )
    digits = dict.fromkeys(("QCE", "QCE sd", "worst QCE", "SMAPE", "SMAPE sd"), ".4f")
    digits |= {"SMAPE / point's": ".3f", "CRPS / expert's": ".3f", "90% holds": ".1%"}
    title = f"Every method, {plan.steps:,} rounds; worst QCE is that of any {plan.window} consecutive ones"
    return Table.of("recalibration", title, rows, digits=digits, page=())


def paper_table(settings: Sequence[Setting]) -> Table:
    """The paper's table, with its own figures beside."""
    names = list(dict.fromkeys(setting.series for setting in settings))
    by_place = {(setting.series, setting.learner): setting for setting in settings}
    rows: list[Row] = []
    for learner in dict.fromkeys(setting.learner for setting in settings):
        for method in (EXPERT, ISOTONIC, ORCA, OURS):
            row: Row = {"forecaster": TITLES[learner] if method == EXPERT else f"+ {method}"}
            for name in names:
                theirs = by_place[name, learner].paper.get(method, (None, None))
                for what, figure in zip(("QCE", "SMAPE"), theirs, strict=True):
                    row[f"{name} {what}"] = by_place[name, learner].mean(method, what.lower())
                    row[f"paper's {name} {what}"] = figure
            rows.append(row)
    alone: Row = dict.fromkeys(rows[0]) | {"forecaster": LAST}
    for setting in settings:
        alone |= {f"{setting.series} {what}": setting.mean(LAST, what.lower()) for what in ("QCE", "SMAPE")}
    rows.append(alone)
    digits = dict.fromkeys(rows[0], ".3f") | {f"{name} QCE": ".4f" for name in names}
    title = f"The paper's table, ORCA at rate {settings[0].rate:g}"
    shown = tuple(column for column in rows[0] if not column.startswith("paper's"))
    return Table.of("recalibration_paper", title, rows, digits=digits, caption=KNEW, page=shown)


def rule_table(settings: Sequence[Setting]) -> Table:
    """QCE, SMAPE and CRPS at each of ORCA's rates, on the runs that all rates have."""
    runs = min(len(own) for own in settings[0].orca.values())
    rows: list[Row] = []
    for rate in settings[0].orca:
        own = [setting.orca[rate][:runs] for setting in settings]
        relative = {
            f"{what} / expert's": geometric_mean(
                setting.relative(each, what.lower()) for setting, each in zip(settings, own, strict=True)
            )
            for what in ("SMAPE", "CRPS")
        }
        rows.append(
            {
                "rate": f"{rate:g}",
                "QCE, first half": first_half_qce(own),
                "QCE, all rounds": geometric_mean(mean(score.qce for score in each) for each in own),
                **relative,
                "chosen": "yes" if rate == settings[0].rate else "",
            }
        )
    title = f"ORCA's rate, one for all settings: the lowest QCE in the first half (runs at each: {runs})"
    digits = dict.fromkeys(rows[0], ".4f") | dict.fromkeys(relative, ".3f")
    return Table.of("recalibration_rule", title, rows, digits=digits, page=())


def chance_table(perfect: Chance, plan: Plan) -> Table:
    """QCE of a perfect forecaster."""
    row: Row = {
        "rounds": plan.steps,
        "QCE, mean": perfect.mean,
        "QCE, 5%": perfect.low,
        "QCE, 95%": perfect.high,
        f"worst QCE over {plan.window} rounds, mean": perfect.worst,
    }
    return Table.of("recalibration_chance", "QCE of a perfect forecaster", [row], digits=dict.fromkeys(row, ".4f"))


# --- claims ---

LEAST_FALL, MOST_RISE = 0.13, 1.1
SHARE_SMALL_RISE, SHARE_SMAPE_FALLS = 7 / 8, 2 / 8
CLAIMS = (
    "ORCA lowers QCE in all 8 settings",
    "it lowers QCE by 13% to 92% (tested: by at least 13% everywhere)",
    "it raises SMAPE by less than 10% in 7 of 8 settings (by the paper's table in 6)",
    "it lowers SMAPE in 2 of 8 settings",
    "ORCA's QCE is below that of isotonic recalibration in all 8 settings",
    "calibration improves without worse predictions (tested by CRPS, which the paper does not show: not above the "
    "expert's in all settings)",
)


def claims(settings: Sequence[Setting]) -> tuple[Claim, ...]:
    """Claims of section 6.1, by ORCA at the chosen rate, and as a bound at each setting's best."""
    found, at_best = (_found(settings, {o.name: o.of(method) for o in settings}) for method in (ORCA, BOUND))
    tested = (
        Claim("6.1", claim, here, "yes" if met else "no", best)
        for claim, (here, met), (best, _) in zip(CLAIMS, found, at_best, strict=True)
    )
    cells = "the same kind of cells for forecaster and adversary matters"
    return *tested, Claim("6.1", cells, "both have 50 even cells here, as in the paper", "not tested")


def _found(settings: Sequence[Setting], runs: Mapping[str, Sequence[Score]]) -> list[tuple[str, bool]]:
    """Finding for each claim, and True if it agrees with the claim."""
    count = len(settings)

    def ratios(what: str, of: str = EXPERT) -> dict[str, float]:
        return {
            o.name: mean(getattr(score, what) for score in runs[o.name]) / o.beside(of, runs[o.name], what)
            for o in settings
        }

    def not_below(found: Mapping[str, float], most: float = 1.0) -> list[str]:
        return [name for name, ratio in found.items() if ratio >= most]

    def below_all(found: Mapping[str, float], whose: str) -> tuple[str, bool]:
        missed = not_below(found)
        ends = f"{min(found.values()):.3f} to {max(found.values()):.3f}"
        return f"{so_many(missed, count)}: {ends} times {whose}", not missed

    error, percent = ratios("qce"), ratios("smape")
    falls = [1.0 - ratio for ratio in error.values()]
    risen, up = not_below(percent, MOST_RISE), not_below(percent)
    change = f"{min(percent.values()) - 1.0:+.0%} to {max(percent.values()) - 1.0:+.0%}"
    return [
        (so_many(not_below(error), count), not not_below(error)),
        (f"by {min(falls):.0%} to {max(falls):.0%}", min(falls) >= LEAST_FALL),
        (f"{so_many(risen, count)}: {change}", count - len(risen) >= SHARE_SMALL_RISE * count),
        (so_many(up, count), count - len(up) >= SHARE_SMAPE_FALLS * count),
        below_all(ratios("qce", ISOTONIC), "isotonic's"),
        below_all(ratios("crps"), "the expert's"),
    ]


def so_many(missed: Sequence[str], count: int) -> str:
    """Number of settings that are not missed, and the missed ones.

    >>> so_many(["wind/network"], 8)
    '7 of 8, not on wind/network'
    """
    return f"{count - len(missed)} of {count}" + (f", not on {', '.join(missed)}" if missed else "")
