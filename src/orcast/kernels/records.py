"""Names of the numbers in each kind of record: the members of the structs in the `.pxd` files."""

import re
from pathlib import Path

STRUCT = re.compile(r"^cdef struct (\w+):\n((?:    .+\n)+)", re.MULTILINE)


def struct_members(module: str) -> dict[str, tuple[str, ...]]:
    """Members of each struct of a module, such as "kernels/state", in their order."""
    text = (Path(__file__).parents[1] / f"{module}.pxd").read_text("utf-8")
    return {name: tuple(re.findall(r"(\w+)(?:,|$)", body, re.MULTILINE)) for name, body in STRUCT.findall(text)}


STRUCTS = struct_members("kernels/state") | struct_members("kernels/finite_state")

# --- ledger
# budget: credit, B_1 + ... + B_T, allowances for delay and the excess of rounds that did not hold; rounds: outcomes
# settled; held: of these, rounds whose certificate held; excess: what of the budget was added because a certificate
# did not hold; roots: sum of the sizes that the settled payoffs may have; delay: sum over the settled rounds of the
# outcomes settled between forecast and outcome; weight: rounds, discounted as the payoffs are.
ACCOUNT = STRUCTS["Account"]
# count: discounted sum of the contexts; excess: what was added because the group exceeded its budget.
GROUP_ACCOUNT = STRUCTS["GroupAccount"]
# Part of a layout (whole numbers): start in the cumulative payoff, coordinates, groups, start of its places in the core
# payoff, start of its context, whether it is one-sided.
PART = STRUCTS["Part"]
CERTIFICATE = STRUCTS["Certificate"]
# Log of a round that is run in a batch: mean and sd are those of the nearest normal.
ROUND_LOG = STRUCTS["RoundLog"]
# Counters of a stream beside its memory: rounds so far, usual lag (nan before any), slack reserved by the pending
# rounds, sum and number of the absolute errors of point forecasts.
COUNTERS = STRUCTS["Counters"]
# Kinds of events.
PREDICT, SETTLE, DROP = 0, 1, 2
# Rate at which the usual lag is learnt.
LAG_RATE = 0.05
# Empirical indicators, after the sums by level: variance of the randomisation, weight, rounds without randomisation.
COUNTS = STRUCTS["Counts"]

# --- rounds
# pending: outcomes outstanding at the forecast; draw: number in (0, 1) if randomised, else 0. On ordered
# spaces: cells: their number; low, high: window to which outcomes are clipped. On finite spaces: variance: of
# the masses by the draw, summed over the cells.
INFO = STRUCTS["Info"]
# crps, squared_error: discounted sums, count: their weight; excesses: sums of our score minus the expert's in `rounds`.
RIVAL = STRUCTS["Rival"]
# outcomes: of rounds with an expert; loss_sum, loss_count: discounted CRPS of the expert; robust_loss: its robust mean;
# last_error: of the forecast's median; level_mean, level_variance: of the outcomes; squares: sum of squared payoffs.
STATISTICS = STRUCTS["Statistics"]

# --- finite spaces
# brier: discounted sum, count: its weight; excess: sum of our Brier score minus the expert's over `rounds`.
FINITE_RIVAL = STRUCTS["FiniteRival"]
# Memory of a member, how many of the features it uses, and whether it shifts log masses of more than two cells.
FINITE_MEMBER = STRUCTS["FiniteMember"]
# Features of a cell: log mass of the expert; 1 and log 4 x_0 x_1 in the second of two cells, else 0; the last outcome
# and the one before, minus the mean; the expert's last error; log mean outcome - log mass; the expert's mean error.
CELL_FEATURES = STRUCTS["CellFeatures"]

# --- monitors
# ends of a PIT's interval, increasing: the lower one is between the first two, the upper one between the last two
ENDS = 4
# places in the row of a stream, of what its lanes share
# round of the first alarm (0: none), evidence of both tests, rounds that found no lane
ROUNDS, ALARM, EVIDENCE, CHANGE_EVIDENCE, SKIPPED = 0, 1, 2, 3, 4
# the time with the largest evidence since some start: the evidence, its round, its kind, and sums since the start
PEAK, PEAK_END, PEAK_KIND, PEAK_SUMS = 5, 6, 7, 8
# the last change: how many there were, the round of its alarm, its kind, and sums since the start
CHANGES, CHANGE_AT, CHANGE_KIND, CHANGE_SUMS = 12, 13, 14, 15
HEAD = 19
# sums since a start: rounds, share inside the band, scores, their squares
COUNT, INSIDE, SCORE, SQUARE, SUMS = 0, 1, 2, 3, 4
# a lane: rounds issued when its last outcome came, its rounds, PITs in its histogram; then its wealth
CLOCK, OWN, RANKED, LANE_HEAD = 0, 1, 2, 3
