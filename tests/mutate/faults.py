"""The written list of faults: what is replaced by what, and the tests that must notice.

Each is a slip of one token: a sign, a factor, an index, a comparison, an update that was forgotten.
"""

from __future__ import annotations

from typing import NamedTuple


class Fault(NamedTuple):
    """A fault: `text`, which occurs once in `file` (below `src/orcast`), becomes `instead`; `tests` must notice."""

    name: str
    file: str
    text: str
    instead: str
    tests: tuple[str, ...]


def golden(*stories: str) -> tuple[str, ...]:
    """Stories of states that an earlier version wrote."""
    return tuple(f"tests/persistence/test_golden.py::test_a_state_goes_on_as_it_did[v1-{story}]" for story in stories)


def definitions(kind: str, *cases: str) -> tuple[str, ...]:
    """Definitions of the learners."""
    file, _, test = kind.rpartition("/")
    return tuple(f"tests/engine/kernels/test_{file}definitions.py::{test}[{case}]" for case in cases)


def certified(*payoffs: str) -> tuple[str, ...]:
    """The certificate against brute force."""
    test = "tests/engine/test_certificate.py::test_no_outcome_is_worse_than_the_certificate_says"
    return tuple(f"{test}[{payoff}]" for payoff in payoffs)


TRACKER = definitions("test_tracker", "plain", "atoms, late")
JUMPS = definitions("test_tracker", "jumps")
SEASONS = definitions("test_tracker", "season, late")
PEAKS = ("tests/engine/kernels/test_definitions.py::test_the_two_highest_peaks_are_the_seasons",)
QUANTILE_TRACKERS = definitions("test_quantile_trackers", "pool", "plain")
EVIDENCE = definitions("test_evidence", "late")
CHANCE = definitions("test_the_last_layer_makes_allowance_for_chance", "late")
FORGETTING = definitions("test_the_last_layer_makes_allowance_for_chance", "forgetting")
CAPS = ("tests/engine/test_do_no_harm.py::test_the_corrected_expert_stays_within_its_caps",)
MEMBERS = definitions("test_pit_members", "plain", "late")
GROUPS = definitions("test_groups", "atoms", "atoms, late")
LATE = definitions("test_losses_of_the_experts", "late")
EXPERTS = definitions("test_losses_of_the_experts", "experts")
POOL = ("tests/engine/kernels/test_definitions.py::test_the_pool_weighs_experts_by_their_losses",)
MEMBERSHIP = ("tests/engine/test_membership.py",)
BINARY = definitions("binary_/test_the_binary_committee_is_its_definition", "3-one", "20-one")
FINITE = definitions("finite_/test_the_finite_committee_is_its_definition", "3-one", "3-several")
BINARY_CERTIFICATE = ("tests/engine/test_certificate.py::test_the_certificate_of_a_probability_is_exact",)
LARGEST = ("tests/engine/test_certificate.py::test_the_maximum_in_a_cell",)
PATHS = (
    "tests/engine/test_path_search.py::test_the_best_path_against_all_paths",
    "tests/engine/test_path_search.py::test_a_path_is_bounded_within_its_cells_too",
)
GRID = ("tests/engine/test_path_search.py::test_the_grid",)
RESOLUTION = (
    "tests/engine/test_path_search.py::test_the_resolution_is_what_a_point_adds_to_its_cell",
    "tests/engine/test_path_search.py::test_where_the_resolution_is_not_enough_the_rest_is_said_before",
)
UNITS = ("tests/engine/test_certificate.py::test_the_unit_of_a_regret_that_crosses_zero",)
AXES = ("tests/engine/test_axes.py",)
LEDGER = ("tests/test_ledger.py",)
RANDOMISED = ("tests/forecasts/test_randomised.py",)
ROUNDS = ("tests/test_rounds.py",)
ORDERING = ("tests/panel/test_ordering.py",)
EVENTS = ("tests/panel/test_events.py",)
RESIDUALS = ("tests/test_residuals.py",)
FILES = ("tests/persistence/test_files.py::test_one_bit_flipped_anywhere",)
MIGRATIONS = golden("partition_binary", "partition_interval")
FORMAT_2 = ("tests/persistence/test_format_2.py",)
SCORES = ("tests/test_scores.py",)
METRICS = ("tests/test_metrics.py",)
PARTITION = tuple(
    f"tests/paper/test_partition.py::{name}"
    for name in (
        "test_the_bounds_are_those_of_the_lemmas",
        "test_the_cell_of_a_vector_is_its_nearest_composition",
        "test_an_outcome_on_an_edge_is_in_the_bin_on_its_left",
    )
)
ANY_SCORE = ("tests/paper/test_partition.py::test_every_proper_score_has_a_bound_that_holds",)
SPREAD = ("tests/engine/test_spread.py",)
PLAIN_REGRET = ("tests/engine/test_plain_regret.py",)
JOURNAL = ("tests/streaming/test_journal.py",)

_TRACKER = "engine/kernels/tracker.py"
_SEASONS = "engine/kernels/seasons.py"
_QUANTILE_TRACKERS = "engine/kernels/quantile_trackers.py"
_EVIDENCE = "engine/kernels/evidence.py"
_CORRECTION = "engine/kernels/correction.py"
_SPREAD = "engine/kernels/spread.py"
_MEMBERS = "engine/kernels/pit_members.py"
_GROUPS = "engine/kernels/groups.py"
_BINARY = "engine/kernels/binary.py"
_FINITE = "engine/kernels/finite.py"
_ROUND = "engine/kernels/rounds.py"
_EQUILIBRIUM = "engine/kernels/equilibrium.py"
_CERTIFICATE = "engine/kernels/certificate.py"
_PATH_SEARCH = "engine/kernels/path_search.py"
_JUDGING = "engine/kernels/judging.py"
_LAST_LAYER = "engine/kernels/last_layer.py"
_EVENTS = "engine/kernels/events.py"
_AXES = "engine/dense/axes.py"
_PARTITION = "paper/partition/recalibrator.py"

LEARNERS = (
    # --- the tracker
    Fault(
        "tracker: covariance discounted the wrong way",
        _TRACKER,
        "P[i, j] = (P[i, j] - gain[i] * gain[j] / scale) / discount",
        "P[i, j] = (P[i, j] - gain[i] * gain[j] / scale) * discount",
        TRACKER,
    ),
    Fault(
        "tracker: an atom has no spread",
        _TRACKER,
        "deviation = sqrt(error * error + blur / (size * size)) / MEAN_ABS",
        "deviation = sqrt(error * error) / MEAN_ABS",
        TRACKER,
    ),
    Fault(
        "tracker: a spread rescaled the wrong way",
        _TRACKER,
        "memory.spread[c, SpreadColumn.FAST] *= size / new",
        "memory.spread[c, SpreadColumn.FAST] *= new / size",
        TRACKER,
    ),
    Fault(
        "tracker: the last error but one skipped",
        _TRACKER,
        "statistics[Statistic.ERROR_3] = statistics[Statistic.ERROR_2]",
        "statistics[Statistic.ERROR_3] = statistics[Statistic.ERROR_1]",
        TRACKER,
    ),
    Fault(
        "tracker: the spread never leaves its youth",
        _TRACKER,
        "young = 1.0 / (statistics[Statistic.OUTCOMES] * weight + YOUNG)",
        "young = 1.0 / YOUNG",
        TRACKER,
    ),
    Fault(
        "tracker: all learners trust an expert that moves far",
        _TRACKER,
        "if rules.learners[c, LearnerColumn.TRUSTING] == 0.0 or i",
        "if i",
        JUMPS,
    ),
    Fault(
        "tracker: variance of a cut normal",
        "engine/kernels/quantile_function.py",
        "max(1.0 + (a * density_a - b * density_b) / share - mean * mean, 0.0)",
        "max(1.0 + (a * density_a + b * density_b) / share - mean * mean, 0.0)",
        TRACKER,
    ),
    Fault(
        "seasons: late outcomes are taken for the last ones",
        _SEASONS,
        "back = lag - 1 - int(pending)",
        "back = lag - 1",
        SEASONS,
    ),
    Fault(
        "seasons: a new one keeps the coefficient of the old",
        _TRACKER,
        "forget(memory.location[c], memory.location_cov[c], TrackerRecord.SEASON_1 + i)",
        "pass",
        SEASONS,
    ),
    Fault(
        "seasons: one that was found has no advantage",
        _SEASONS,
        "found *= HIGHER",
        "found *= 1.0",
        PEAKS,
    ),
    Fault(
        "seasons: multiples of a presumed one displace one that cannot be measured yet",
        _SEASONS,
        "elif unmeasured and (",
        "elif count < 0.0 and (",
        PEAKS,
    ),
    Fault(
        "seasons: a presumed one has to be found",
        _SEASONS,
        "found = max(found, PRESUMED)",
        "found = max(found, 0.0)",
        PEAKS,
    ),
    # --- quantile trackers, evidence, level offsets
    Fault(
        "quantile trackers: nothing is let go",
        _QUANTILE_TRACKERS,
        "kept = 1.0 - trackers.options[m, QuantileTrackerColumn.LEAK]",
        "kept = 1.0",
        QUANTILE_TRACKERS,
    ),
    Fault(
        "quantile trackers: the sums of the pool since its beginning",
        _QUANTILE_TRACKERS,
        "gradient += share * ((signal[at] - seen[at]) / new - gradient)",
        "gradient += share * (signal[at] / new - gradient)",
        QUANTILE_TRACKERS,
    ),
    Fault(
        "quantile trackers: offsets of the pool without a unit",
        _QUANTILE_TRACKERS,
        "trackers.offsets[m, i] = offsets[i] * expected_loss",
        "trackers.offsets[m, i] = offsets[i]",
        QUANTILE_TRACKERS,
    ),
    Fault(
        "quantile trackers: a tie is an error",
        _QUANTILE_TRACKERS,
        "elif y > quantiles[i]:",
        "elif y >= quantiles[i]:",
        definitions("test_quantile_trackers", "atoms"),
    ),
    Fault(
        "evidence: blocks of one outcome, however many are outstanding",
        _EVIDENCE,
        "if evidence[Evidence.COUNT] > pending:",
        "if evidence[Evidence.COUNT] > 0.0:",
        EVIDENCE,
    ),
    Fault(
        "evidence: a block that is not over does not count",
        _EVIDENCE,
        "sqrt(1.0 + evidence[Evidence.SQUARE] + block * block)",
        "sqrt(1.0 + evidence[Evidence.SQUARE])",
        definitions("test_tracker", "late"),
    ),
    Fault(
        "evidence: a ledger whose squares are forgotten too slowly",
        _EVIDENCE,
        "ledger[LedgerRow.SUMS, last] *= EVIDENCE_DISCOUNT * EVIDENCE_DISCOUNT",
        "ledger[LedgerRow.SUMS, last] *= EVIDENCE_DISCOUNT",
        EVIDENCE,
    ),
    Fault(
        "level offsets: late errors count as many",
        "engine/kernels/level_offsets.py",
        "EARLY_RATE / (statistics[Statistic.OUTCOMES] + START)) / late",
        "EARLY_RATE / (statistics[Statistic.OUTCOMES] + START))",
        definitions("test_quantile_trackers", "late"),
    ),
    # --- the corrected expert
    Fault(
        "correction: losses in half the unit",
        _CORRECTION,
        "    unit = 0.5 * outcome.unit",
        "    unit = outcome.unit",
        QUANTILE_TRACKERS,
    ),
    Fault(
        "correction: the loss of another learner",
        _CORRECTION,
        "weight = young * odds * exp(-WEIGHT_RATE * (loss[c] - best))",
        "weight = young * odds * exp(-WEIGHT_RATE * (loss[c - 1] - best))",
        TRACKER,
    ),
    Fault(
        "correction: odds of a learner without their square",
        _CORRECTION,
        "return 1.0 / (overlap * overlap)",
        "return 1.0 / overlap",
        definitions("test_tracker", "late"),
    ),
    Fault(
        "correction: a pool without a gain is no reason to keep the expert",
        _CORRECTION,
        "return hint + NO_GAIN * gain",
        "return hint",
        definitions("test_tracker", "pool"),
    ),
    Fault(
        "spread: the ledger's sign",
        _SPREAD,
        "total -= weight * ledger[LedgerRow.SUMS, i]",
        "total += weight * ledger[LedgerRow.SUMS, i]",
        SPREAD,
    ),
    Fault(
        "evidence: ties with atoms count for nothing",
        _EVIDENCE,
        "    share_atom(quantiles, y, levels, gradient)",
        "    pass",
        SPREAD,
    ),
    Fault(
        "spread: what is usual in the pool is forgotten",
        _SPREAD,
        "own = total - usual * count",
        "own = total",
        definitions("test_tracker", "pool"),
    ),
    Fault(
        "spread: streams that agree are taken for independent ones",
        _SPREAD,
        "unsure = max(1.0 - apart, 0.0) + apart / streams",
        "unsure = apart / streams",
        SPREAD,
    ),
    Fault(
        "spread: a stream that steps leaves its old part behind",
        "engine/kernels/pooling.py",
        "add_faults(rules, memory, s, h, -1.0)",
        "pass",
        ("tests/panel/test_pooling.py::test_the_pass_is_what_its_slow_twin_says",),
    ),
    Fault(
        "correction: level offsets without a cap",
        _CORRECTION,
        "    cap(memory.statistics, expert, settled)",
        "    pass",
        CAPS,
    ),
    Fault(
        "correction: a cap beyond the bounds",
        _CORRECTION,
        "least = min(max(lowest - CAP * max(median - q[0], far), expert.low), expert.high)\n"
        "    most = min(max(highest + CAP * max(q[last] - median, far), expert.low), expert.high)",
        "least = lowest - CAP * max(median - q[0], far)\n    most = highest + CAP * max(q[last] - median, far)",
        CAPS,
    ),
    # --- members of the committee
    Fault(
        "members: the factor 3 of the context",
        _MEMBERS,
        "memory.shape[m, ShapeRow.LAST_PIT, j] += 3.0 * round.info[RoundInfo.LAST_CONTEXT] * change",
        "memory.shape[m, ShapeRow.LAST_PIT, j] += round.info[RoundInfo.LAST_CONTEXT] * change",
        MEMBERS,
    ),
    Fault(
        "members: the smaller step",
        _MEMBERS,
        "step = weight * max(rules.members[m, MemberColumn.STEP], 1.0 / observations)",
        "step = weight * min(rules.members[m, MemberColumn.STEP], 1.0 / observations)",
        MEMBERS,
    ),
    Fault(
        "members: a gain on the expert for one on the corrected expert",
        _MEMBERS,
        "gain = crps(y, k, n, left, right, rows[CellRow.PRIOR]) -",
        "gain = crps(y, k, n, left, right, rows[CellRow.EXPERT]) -",
        EVIDENCE,
    ),
    Fault(
        "members: means under the prior",
        _MEMBERS,
        "means[m, j] += p[k] * phi[k, j]",
        "means[m, j] += rows[CellRow.PRIOR, k] * phi[k, j]",
        MEMBERS,
    ),
    # --- the last layer's allowance for chance
    Fault(
        "last layer: chance counts once, however many outcomes are outstanding",
        _LAST_LAYER,
        "chance = CHANCE * (1.0 + pending) * statistics[Statistic.SQUARES]",
        "chance = CHANCE * statistics[Statistic.SQUARES]",
        CHANCE,
    ),
    Fault(
        "rounds: chance forgets less than the ledger",
        _ROUND,
        "squares = rules.discount * rules.discount * memory.statistics[Statistic.SQUARES]",
        "squares = rules.discount * memory.statistics[Statistic.SQUARES]",
        FORGETTING,
    ),
    # --- groups
    Fault(
        "groups: an atom has no spread",
        _GROUPS,
        "rate * (error * error + blur - group[GroupColumn.VARIANCE])",
        "rate * (error * error - group[GroupColumn.VARIANCE])",
        GROUPS,
    ),
    Fault(
        "groups: a variance for a spread",
        _GROUPS,
        "min(max(sqrt(variance / total), LEAST_SPREAD), MOST_SPREAD)",
        "min(max(variance / total, LEAST_SPREAD), MOST_SPREAD)",
        GROUPS,
    ),
    Fault(
        "groups: half a membership counts as a whole one",
        _GROUPS,
        "rate = c * weight * max(RATE,",
        "rate = weight * max(RATE,",
        GROUPS,
    ),
    # --- a round: how late outcomes count, rivals
    Fault(
        "rounds.teach: late outcomes count as fresh ones",
        _ROUND,
        "weight = delay_weight(info[RoundInfo.PENDING])",
        "weight = 1.0",
        LATE,
    ),
    Fault(
        "rounds: an expert falls behind without end",
        _ROUND,
        "behind = min(loss[ExpertLoss.BEHIND], most)",
        "behind = max(loss[ExpertLoss.BEHIND], most)",
        EXPERTS,
    ),
    Fault(
        "rounds: weights of experts that ignore the neighbouring levels",
        _ROUND,
        "weight = reach + 1.0 - abs(i - j)",
        "weight = 1.0 if i == j else 0.0",
        POOL,
    ),
    Fault(
        "rounds: a pool whose quantiles cross",
        _ROUND,
        "    sort(out)",
        "    pass",
        MEMBERSHIP,
    ),
    Fault(
        "membership: who leaves takes nothing off the budget",
        "engine/membership.py",
        "mine.account[Account.BUDGET] -= owed.sum()",
        "mine.account[Account.BUDGET] -= 0.0",
        MEMBERSHIP,
    ),
    Fault(
        "membership: who joins begins with another's regret",
        "engine/membership.py",
        "found = np.full(shape, fill, dtype=array.dtype)",
        "found = np.full(shape, array.max(initial=fill), dtype=array.dtype)",
        MEMBERSHIP,
    ),
    Fault(
        "delays: a weight without its root",
        "engine/kernels/delays.py",
        "return 1.0 / sqrt(1.0 + pending)",
        "return 1.0 / (1.0 + pending)",
        LATE,
    ),
    # --- binary outcomes
    Fault(
        "binary: a step without its weight",
        _BINARY,
        "theta[j] = discount * (theta[j] + weight * error * gain[j])",
        "theta[j] = discount * (theta[j] + error * gain[j])",
        BINARY,
    ),
    Fault(
        "binary: drift by the discount, not its square",
        _BINARY,
        "spread[j * count + j] += (1.0 - square) * START[i, j]",
        "spread[j * count + j] += (1.0 - discount) * START[i, j]",
        BINARY,
    ),
    Fault(
        "binary: stage 2 learns as fast as losses do",
        _BINARY,
        "1.0 if i < FIRST_STAGE else careful, scratch)",
        "1.0 if i < FIRST_STAGE else weight, scratch)",
        BINARY,
    ),
    Fault(
        "binary: what was learnt wears off once",
        _BINARY,
        "total *= real_power(DISCOUNT[i], pending)",
        "total *= DISCOUNT[i]",
        BINARY,
    ),
    Fault(
        "binary: the slow step for the fast mean",
        _BINARY,
        "+= FAST_STEP * weight * (error - statistics[BinaryStatistic.FAST_ERROR])",
        "+= SLOW_STEP * weight * (error - statistics[BinaryStatistic.FAST_ERROR])",
        BINARY,
    ),
    Fault(
        "binary: a regret certified by the factor of the bias",
        _BINARY,
        "square += factors[3] * regret * regret",
        "square += factors[2] * regret * regret",
        BINARY_CERTIFICATE,
    ),
    # --- finite spaces
    Fault(
        "finite: the sign of a scaling's error",
        _FINITE,
        "error = log(max(round.base[k], FLOOR)) - mean",
        "error = log(max(round.base[k], FLOOR)) + mean",
        FINITE,
    ),
    Fault(
        "finite: the curvature of a shift",
        _FINITE,
        "discount * memory.shift_sum[m, j] + weight * p[j] * (1.0 - p[j])",
        "discount * memory.shift_sum[m, j] + weight * p[j]",
        FINITE,
    ),
    Fault(
        "finite: a missing expert loses nothing",
        _FINITE,
        "own = pooled if np.isnan(round.experts[e, 0])",
        "own = 0.0 if np.isnan(round.experts[e, 0])",
        FINITE,
    ),
    # --- circles and boxes
    Fault(
        "axes: the last error in other units", _AXES, "memory.last[axis] = z", "memory.last[axis] = z * spread", AXES
    ),
    Fault(
        "axes: covariance discounted the wrong way",
        _AXES,
        "(cov - np.outer(gain, x @ cov)) / discount",
        "(cov - np.outer(gain, x @ cov)) * discount",
        AXES,
    ),
    Fault(
        "axes: the smaller rate",
        _AXES,
        "rate = weight * max(1.0 - discount,",
        "rate = weight * min(1.0 - discount,",
        AXES,
    ),
)

PROMISE = (
    # --- the ledger
    Fault(
        "ledger: what is reserved may be used again",
        "ledger.py",
        "(account[Account.BUDGET] - square) - reserved",
        "(account[Account.BUDGET] - square)",
        LEDGER,
    ),
    Fault(
        "ledger: the share that a part lends",
        "ledger.py",
        "share = min((max(rarest, 0.0) + 1.0) /",
        "share = min(max(rarest, 0.0) /",
        LEDGER,
    ),
    Fault(
        "ledger: half of the delay term",
        "ledger.py",
        "certificate[CertificateField.BOUND] + 2.0 * certificate[CertificateField.ROOT] * (",
        "certificate[CertificateField.BOUND] + certificate[CertificateField.ROOT] * (",
        LEDGER,
    ),
    Fault(
        "ledger: a group's budget forgotten too slowly",
        "ledger.py",
        "groups[i, GroupAccount.BUDGET] *= discount * discount",
        "groups[i, GroupAccount.BUDGET] *= discount",
        LEDGER,
    ),
    Fault(
        "ledger: half of a group's delay term",
        "ledger.py",
        "(c * c + 2.0 * abs(c) * late) * layout.bounds[part]",
        "(c * c + abs(c) * late) * layout.bounds[part]",
        LEDGER,
    ),
    Fault(
        "ledger: the excess forgotten too slowly",
        "ledger.py",
        "account[Account.EXCESS] *= discount * discount",
        "account[Account.EXCESS] *= discount",
        LEDGER,
    ),
    Fault(
        "ledger: what was added after is promised",
        "ledger.py",
        "before = discount * discount * max(account[Account.BUDGET] - account[Account.EXCESS], 0.0) + bound",
        "before = discount * discount * account[Account.BUDGET] + bound",
        LEDGER,
    ),
    Fault(
        "randomised: an atom begins where the cell before it ends",
        "forecasts/kernels.py",
        "return np.nextafter(right[k], -np.inf)",
        "return right[k]",
        RANDOMISED,
    ),
    Fault(
        "randomised: the coin turned over",
        "forecasts/kernels.py",
        "return before + coin * mass < level",
        "return before + mass - coin * mass > level",
        RANDOMISED,
    ),
    Fault(
        "counts: the smaller of the two squares",
        "engine/kernels/counts.py",
        "kept + max(all_over, none_over)",
        "kept + min(all_over, none_over)",
        RANDOMISED,
    ),
    Fault(
        "ledger: others' slack covers an excess",
        "ledger.py",
        "excess = square - (account[Account.BUDGET] - reserved)",
        "excess = square - account[Account.BUDGET]",
        LEDGER,
    ),
    Fault(
        "ledger: a certificate that was wrong still held",
        "ledger.py",
        "account[Account.HELD] -= certificate[CertificateField.HOLDS]",
        "account[Account.HELD] -= 0.0",
        LEDGER,
    ),
    # --- the certificate
    Fault(
        "certificate: the promise of one round less",
        "ledger.py",
        "weight = discount * account[Account.WEIGHT] + 1.0",
        "weight = discount * account[Account.WEIGHT]",
        LEDGER,
    ),
    Fault(
        "certificate: the smaller root",
        "ledger.py",
        "sqrt(max(bound, general))",
        "sqrt(min(bound, general))",
        LEDGER,
    ),
    Fault(
        "certificate: an overdraft beyond the slack",
        "ledger.py",
        "certificate[CertificateField.OVERDRAFT] = min(overdraft, free)",
        "certificate[CertificateField.OVERDRAFT] = overdraft",
        LEDGER,
    ),
    Fault(
        "certificate: a broken one promises as one that holds",
        "ledger.py",
        "+ bound + max(overdraft - free, 0.0)",
        "+ bound",
        LEDGER,
    ),
    Fault(
        "certify: half of what is owed",
        _CERTIFICATE,
        "linear[k] = 2.0 * v + norm[k]",
        "linear[k] = v + norm[k]",
        certified("quantile"),
    ),
    Fault(
        "certify: no regret within a cell",
        _CERTIFICATE,
        "unit * width * 0.5 * change,",
        "unit * width * change,",
        certified("regret"),
    ),
    Fault(
        "certify: moments around the wrong mean",
        _CERTIFICATE,
        "z[0] += expected[order - 1]",
        "z[0] -= expected[order - 1]",
        certified("moment"),
    ),
    Fault(
        "certify: a binomial coefficient of the Bernstein form",
        _CERTIFICATE,
        "choose *= (degree - j) / (j + 1.0)",
        "choose *= (degree - j) / (j + 2.0)",
        LARGEST,
    ),
    Fault(
        "resolution: the largest value without the mean",
        _CERTIFICATE,
        "most = max(most, cell_maximum(function, -np.inf) - mean + other)",
        "most = max(most, cell_maximum(function, -np.inf) + other)",
        RESOLUTION,
    ),
    Fault(
        "resolution: allowed for once, not twice",
        _JUDGING,
        "needed = min(needed, 2.0 * resolution(",
        "needed = min(needed, resolution(",
        RESOLUTION,
    ),
    # --- the search
    Fault(
        "search: paths that go back",
        _PATH_SEARCH,
        "first = total - 1 if k == n - 1 else i",
        "first = total - 1 if k == n - 1 else 0",
        PATHS,
    ),
    Fault(
        "search: what the pull adds within a cell",
        _PATH_SEARCH,
        "if top > left:",
        "if rise > left:",
        PATHS,
    ),
    Fault(
        "search: the zero of H on the wrong side",
        _PATH_SEARCH,
        "zero = min(max(a - knots[i] / slopes[i], a + aside), b - aside)",
        "zero = min(max(a + knots[i] / slopes[i], a + aside), b - aside)",
        GRID,
    ),
    Fault(
        "last layer: units of a regret that crosses zero",
        _JUDGING,
        "most = max(most, abs(gap + width * F * F / (F - F1)))",
        "most = max(most, abs(gap + width * F * F / (F + F1)))",
        UNITS,
    ),
    Fault(
        "last layer: the lower end of an interval",
        _JUDGING,
        "out[rules.intervals[i, 0]] -= owed[count + i] * scale",
        "out[rules.intervals[i, 0]] += owed[count + i] * scale",
        certified("interval"),
    ),
)

REFUSED = "tests/persistence/test_damaged_states.py::test_numbers_that_no_play_leads_to_are_refused"

GUARDS = (
    # --- experts that never had an outcome, and harm of late
    Fault(
        "experts: a mistyped name stays though its round is dropped",
        "game.py",
        "if gone and self._can_be_left(stay):",
        "if gone and not self._can_be_left(stay):",
        ("tests/engine/test_membership.py::test_a_mistyped_name_is_forgotten_with_its_round[ordered]",),
    ),
    Fault(
        "experts: one that had an outcome is forgotten",
        "game.py",
        "self.untried -= {name for name, present in here if present}",
        "self.untried -= {name for name, present in here if not present}",
        ("tests/engine/test_membership.py::test_who_was_in_a_settled_round_stays",),
    ),
    Fault(
        "verdict: the first quarter is taken for the last",
        "evidence/accuracy.py",
        "last = steps_of(evidence) >= times_of(evidence) - times_of(evidence) // 4",
        "last = steps_of(evidence) <= times_of(evidence) // 4",
        ("tests/evidence/test_evidence.py::test_harm_of_late_is_told_though_the_mean_is_better",),
    ),
    # --- caps, states that are not believed, threads
    Fault(
        "limits: as many pending rounds as anybody likes",
        "game.py",
        'limits.check("pending", int(max_pending))',
        'limits.check("pending", 1)',
        ("tests/test_limits.py::test_too_much_is_refused_in_a_sentence[pending rounds]",),
    ),
    Fault(
        "limits: a cap that is one too small",
        "limits.py",
        "    if count > most:",
        "    if count >= most:",
        ("tests/test_limits.py::test_a_cap_itself_is_allowed",),
    ),
    Fault(
        "load: more rounds held than there were",
        "engine/admissible.py",
        "held <= rounds and",
        "held >= 0.0 and",
        (f"{REFUSED}[more held than rounds]",),
    ),
    Fault(
        "load: matrices are believed to be symmetric",
        "engine/admissible.py",
        "    if (np.abs(matrices - flipped) > ROUNDING * size).any():",
        "    if (np.abs(matrices - flipped) > size / ROUNDING).any():",
        (f"{REFUSED}[not symmetric]",),
    ),
    Fault(
        "threads: a call does not wait for its turn",
        "locks.py",
        "        with self.lock:\n            return method(",
        "        if self.lock:\n            return method(",
        ("tests/test_threads.py::test_a_call_waits_until_the_lock_is_free",),
    ),
    Fault(
        "threads: anybody settles the unnamed round",
        "rounds.py",
        "owner is not this_thread() and owner() is not None",
        "owner is this_thread() and owner() is None",
        ("tests/test_threads.py::test_the_unnamed_round_of_a_thread_is_refused_to_others_and_stays",),
    ),
    Fault(
        "dense: an outcome that failed counts in part",
        "engine/dense/engine.py",
        "                array[...] = was",
        "                array[...] = array",
        ("tests/engine/test_dense.py::test_an_outcome_that_ends_the_memory_changes_nothing",),
    ),
)

PENDING = (
    # --- rounds that are pending
    Fault(
        "rounds: a round is settled against its own slack",
        "rounds.py",
        "self._learn(entry.record, y, reserved)",
        "self._learn(entry.record, y, self.reserved)",
        ROUNDS,
    ),
    Fault(
        "rounds: slack that is not given back",
        "rounds.py",
        "self.reserved = self._reserved_without(entry)",
        "self.reserved = self.reserved if len(self.pending) > 1 else 0.0",
        ROUNDS,
    ),
    Fault(
        "rounds: lost rounds count as late",
        "rounds.py",
        "min(most, 2.0 * self.usual_lag + 2.0)",
        "min(most, 2.0 * self.usual_lag)",
        ROUNDS,
    ),
    Fault(
        "rounds: the usual lag is unlearnt",
        "rounds.py",
        "usual + LAG_RATE * (lag - usual)",
        "usual + LAG_RATE * (usual - lag)",
        ROUNDS,
    ),
    Fault(
        "rounds: what is pending for a lag",
        "rounds.py",
        "learnt_lag(self.usual_lag, float(self.issued - entry.issued))",
        "learnt_lag(self.usual_lag, float(len(self.pending)))",
        ROUNDS,
    ),
    Fault(
        "rounds: the newest makes way",
        "rounds.py",
        "return [next(iter(self.pending))] if",
        "return [next(reversed(self.pending))] if",
        ROUNDS,
    ),
    Fault(
        "rounds: the one that makes way still counts",
        "rounds.py",
        "rest = len(self.pending) - 1",
        "rest = len(self.pending)",
        ROUNDS,
    ),
    # --- panels
    Fault(
        "ordering: outcomes of one moment in the order of forecasts",
        "panel/ordering.py",
        "entries.cutoff.tolist(), strict=True))",
        "(-entries.cutoff).tolist(), strict=True))",
        ORDERING,
    ),
    Fault(
        "ordering: old outcomes of one moment in the order of forecasts",
        "panel/ordering.py",
        'first = np.argsort(entries.time[:old], kind="stable")',
        "first = np.arange(old)",
        ORDERING,
    ),
    Fault(
        "ordering: an outcome is known a step late",
        "panel/ordering.py",
        "ready[0][0] <= until",
        "ready[0][0] < until",
        ORDERING,
    ),
    Fault(
        "ordering: a missing outcome leads",
        "panel/ordering.py",
        "order = np.lexsort((np.isnan(y), time, codes))",
        "order = np.lexsort((~np.isnan(y), time, codes))",
        ORDERING,
    ),
    Fault(
        "ordering: what waits is given up too",
        "panel/ordering.py",
        "age <= 2.0 * self.usual_lag + 2.0 or self.newest_over < self.issued[i]",
        "age <= 2.0 * self.usual_lag + 2.0",
        ORDERING,
    ),
    Fault(
        "row times: a forecast knows what is known at its own time",
        "panel/row_times.py",
        'return np.nextafter(stamps, -math.inf) if stamps.dtype.kind == "f" else stamps - 1',
        "return stamps",
        ("tests/panel/test_row_times.py",),
    ),
    Fault(
        "row times: a lag is forgotten",
        "panel/row_times.py",
        'return later(times.values, stamps_of(lag, times.kind, "lag"))',
        "return times.values",
        ("tests/panel/test_row_times.py",),
    ),
    Fault(
        "ordering: one cutoff too many is remembered",
        "panel/ordering.py",
        "return rows[rows[:, 0] >= cutoffs[-most]]",
        "return rows[rows[:, 0] >= cutoffs[-most - 1]]",
        ORDERING,
    ),
    Fault(
        "promised: the delay of the round itself",
        _EVENTS,
        "2.0 * root * root * (k - 1.0) + 2.0 * root * root",
        "2.0 * root * root * (k - 1.0)",
        EVENTS,
    ),
    Fault(
        "promised: the delay that pending rounds have already",
        _EVENTS,
        "certificates[i, CertificateField.BOUND] + 2.0 * root * late",
        "certificates[i, CertificateField.BOUND] + root * late",
        EVENTS,
    ),
    Fault(
        "promised: the rounds that grow least",
        _EVENTS,
        "budget += growth[count - k]",
        "budget += growth[k - 1]",
        EVENTS,
    ),
    Fault(
        "events: a mean absolute error for a spread",
        _EVENTS,
        "spread = PER_ABSOLUTE * counters[Counter.ERROR_SUM] / counters[Counter.ERROR_COUNT]",
        "spread = counters[Counter.ERROR_SUM] / counters[Counter.ERROR_COUNT]",
        EVENTS,
    ),
    Fault(
        "events: a round is settled against its own slack",
        _EVENTS,
        "others = counters[Counter.RESERVED] - overdraft if",
        "others = counters[Counter.RESERVED] if",
        EVENTS,
    ),
    Fault(
        "events: the usual lag counts from the first round",
        _EVENTS,
        "counters[Counter.ISSUED] - store.issued[entry])",
        "counters[Counter.ISSUED] - entry)",
        EVENTS,
    ),
    Fault(
        "runner: looking ahead leaves its counters behind",
        "panel/runner.py",
        "changing = (self.engine.memory_row, store.counters, store.place, store.queue, store.free)",
        "changing = (self.engine.memory_row, store.place, store.queue, store.free)",
        EVENTS,
    ),
    Fault(
        "runner: looking ahead leaves its residuals behind",
        "panel/runner.py",
        "residuals = self.residuals.copy()",
        "residuals = self.residuals",
        EVENTS,
    ),
    # --- the spread of a point forecast
    Fault(
        "residuals: the inverse factor",
        "constants.py",
        "PER_ABSOLUTE = math.sqrt(math.pi / 2.0)",
        "PER_ABSOLUTE = math.sqrt(2.0 / math.pi)",
        RESIDUALS,
    ),
    Fault(
        "residuals: a copy that is the original",
        "residuals.py",
        "return deepcopy(self)",
        "return self",
        RESIDUALS,
    ),
)

KEPT = (
    # --- states
    Fault(
        "files: half of the checksums pass",
        "persistence/files.py",
        "if zlib.crc32(content, _first_sum(version)) != checksum:",
        "if zlib.crc32(content, _first_sum(version)) < checksum:",
        FILES,
    ),
    Fault(
        "migrations: what was played for what the expert said",
        "persistence/migrations.py",
        'kept = {"expert": folder["said"],',
        'kept = {"expert": folder["played"],',
        MIGRATIONS,
    ),
    Fault(
        "migrations: the mean of squares twice",
        "persistence/migrations.py",
        "return np.sqrt(squares * count) / PER_ABSOLUTE",
        "return np.sqrt(squares / count) / PER_ABSOLUTE",
        RESIDUALS,
    ),
    Fault(
        "format 2: learners in another order",
        "engine/format_2.py",
        "WHENCE = [0, 2, 3, 1, 0, 1]",
        "WHENCE = [0, 1, 2, 3, 0, 1]",
        FORMAT_2,
    ),
    Fault(
        "format 2: the expert's loss for the first learner's",
        "engine/format_2.py",
        'arrays["track_loss"][:, :1], arrays["track_loss"][:, 1:]',
        'arrays["track_loss"][:, 1:2], arrays["track_loss"][:, :-1]',
        FORMAT_2,
    ),
    Fault(
        "format 2: an expert that never moves",
        "engine/format_2.py",
        "math.sqrt(theirs[Statistic.MEDIAN_VARIANCE])",
        "0.0",
        FORMAT_2,
    ),
    Fault(
        "state: pending rounds the newest first",
        "rounds.py",
        "for number, (id, entry) in enumerate(self.pending.items()):",
        "for number, (id, entry) in enumerate(reversed(self.pending.items())):",
        ROUNDS,
    ),
    Fault(
        "state: the usual lag is not restored",
        "rounds.py",
        "= was.issued, was.reserved, was.usual_lag",
        "= was.issued, was.reserved, self.usual_lag",
        ROUNDS,
    ),
    Fault(
        "state: a usual lag of zero is none",
        "rounds.py",
        "np.nan if self.usual_lag is None else self.usual_lag, self.reserved]",
        "np.nan if not self.usual_lag else self.usual_lag, self.reserved]",
        ROUNDS,
    ),
    # --- the journal of a stream
    Fault(
        "journal: a length is enough",
        "streaming/journal.py",
        "int(length) == len(line) and int(checksum, 16)",
        "int(length) == len(line) or int(checksum, 16)",
        JOURNAL,
    ),
    Fault(
        "journal: its size is that of the last entry",
        "streaming/journal.py",
        "self.size += len(entry)",
        "self.size = len(entry)",
        JOURNAL,
    ),
    Fault(
        "journal: an entry that the snapshot has is played again",
        "streaming/durable_session.py",
        "if number <= self.lines:",
        "if number < self.lines:",
        JOURNAL,
    ),
    # --- scores and metrics
    Fault(
        "scores: clipping is free",
        "scores.py",
        "float(-math.log(kept[k]) + kept.sum() - 1.0)",
        "float(-math.log(kept[k]))",
        SCORES,
    ),
    Fault(
        "scores: the energy score without its half",
        "scores.py",
        "- 0.5 * forecast.mass @ away)",
        "- forecast.mass @ away)",
        SCORES,
    ),
    Fault(
        "metrics: ranks of an ensemble",
        "metrics/quantiles.py",
        "rank = 2.0 * np.arange(1, m + 1) - m - 1",
        "rank = 2.0 * np.arange(1, m + 1) - m + 1",
        METRICS,
    ),
    Fault(
        "metrics: a tie ends a level early",
        "metrics/arrays.py",
        "stop = np.where(y < high, mid[right], 1.0)[tied]",
        "stop = np.where(y < high, mid[right - 1], 1.0)[tied]",
        METRICS,
    ),
    # --- the partition
    Fault(
        "partition: the smallest remainders go up",
        "paper/partition/cells.py",
        'whole[np.argsort(whole - places, kind="stable")[:up]] += 1.0',
        'whole[np.argsort(places - whole, kind="stable")[:up]] += 1.0',
        PARTITION,
    ),
    Fault(
        "partition: a bound without its remainder",
        _PARTITION,
        "* self._promised(cell) + remainder",
        "* self._promised(cell) - remainder",
        PARTITION,
    ),
    Fault(
        "partition: hats that were not touched count",
        _PARTITION,
        "(own.heights - own.rule.slope(q))[cell.weights > 0.0]",
        "(own.heights - own.rule.slope(q))[cell.weights >= 0.0]",
        PARTITION,
    ),
    Fault(
        "partition: any score with the wrong sign",
        "paper/partition/scores.py",
        "np.asarray(values.mean() - values)",
        "np.asarray(values - values.mean())",
        ANY_SCORE,
    ),
    # --- the paper's form of each promise
    Fault(
        "regret: the bound in plain units forgets when an expert joined",
        "engine/bound_payoff.py",
        "np.outer(sums, 1.0 / np.maximum(seen, 1.0))",
        "np.outer(sums, 1.0 / np.maximum(ledger.rounds, seen))",
        PLAIN_REGRET,
    ),
    Fault(
        "regret: a unit multiplies",
        "payoffs/regret.py",
        "np.where(self.present, 1.0 / fixed[:, None], 0.0)",
        "np.where(self.present, 1.0 * fixed[:, None], 0.0)",
        PLAIN_REGRET,
    ),
    Fault(
        "value bound: the same tail in both directions",
        "paper/value_bounds.py",
        "self._beyond += below if direction < 0 else above",
        "self._beyond += below if direction > 0 else above",
        ("tests/test_decisions.py",),
    ),
    Fault(
        "simplex: an outcome on an edge of a bin goes right",
        "payoffs/triangulated.py",
        'np.searchsorted(edges, cell_grid.right, side="left")',
        'np.searchsorted(edges, cell_grid.right, side="right")',
        ("tests/paper/test_exact_simplex.py::test_bins_keep_the_contract",),
    ),
    Fault(
        "half-space: of the sum instead of the mean",
        "engine/half_space.py",
        "largest(engine, ledger, record, total) / weight",
        "largest(engine, ledger, record, total) * weight",
        ("tests/engine/test_half_space.py::test_it_is_the_largest_over_all_outcomes[binary]",),
    ),
    Fault(
        "internal regret: of the sum instead of the mean",
        "metrics/probabilities.py",
        "return most / len(mass)",
        "return most / len(seen)",
        ("tests/test_binary_metrics.py",),
    ),
    Fault(
        "partition: an outcome on an edge goes right",
        "paper/partition/cells.py",
        'int(np.searchsorted(self.edges, value, side="left"))',
        'int(np.searchsorted(self.edges, value, side="right"))',
        PARTITION,
    ),
)

FAULTS = (*LEARNERS, *PROMISE, *GUARDS, *PENDING, *KEPT)
