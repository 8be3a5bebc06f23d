"""Ledger of payoffs: its norm, the slack of a round, the certificate of a forecast, and the payoff of an outcome.

S is the sum of the settled payoffs; one-sided coordinates count through their positive part. B_t is the largest squared
norm of the payoff of round t. A forecast holds if every outcome keeps

    ||S_{t-1} + payoff||_+^2  <=  C B + B_1 + ... + B_t

The payoff is a direct sum of parts. Part i has a context c_i and adds the matrix c_i (x) payoff_i; each group of a part
has an account of its own. With a discount g below 1, S <- g S + payoff and the budget b <- g^2 b + B_t.
"""

# Rounding of sums of some thousand terms.
ROUNDING = 1e-9


def squared_norm(ledger):
    """||S||_+^2; one-sided coordinates count through their positive part."""
    square = 0.0
    for i in range(ledger.layout.size):
        s = ledger.total[i]
        if ledger.layout.sides[i] == 0.0 or s > 0.0:
            square += s * s
    return square


def combine(ledger, context, cumulative, factors, size):
    """Cumulative payoff C and factors f: <S_+, payoff> = <C, d> and ||payoff||^2 = sum of f d^2 for a core payoff d."""
    total = ledger.total
    for i in range(size):
        cumulative[i] = 0.0
        factors[i] = 0.0
    for number in range(ledger.layout.count):
        part = part_at(ledger.layout.parts, number)
        scale = ledger.layout.scale[number]
        norm = 0.0
        for group in range(part.groups):
            c = context[part.context + group]
            if c == 0.0:
                continue
            norm += c * c
            first = part.start + group * part.size
            for i in range(part.size):
                s = total[first + i]
                if part.one_sided == 0 or s > 0.0:
                    cumulative[ledger.layout.places[part.places + i]] += ledger.layout.discount * scale * c * s
        for i in range(part.size):
            factors[ledger.layout.places[part.places + i]] += scale * scale * norm


def squared_payoff(layout, context, payoff):
    """||payoff||^2 of a core payoff with its contexts and weights."""
    square = 0.0
    for number in range(layout.count):
        part = part_at(layout.parts, number)
        own = 0.0
        for i in range(part.size):
            value = payoff[layout.places[part.places + i]]
            own += value * value
        norm = 0.0
        for group in range(part.groups):
            norm += context[part.context + group] * context[part.context + group]
        square += layout.scale[number] * layout.scale[number] * norm * own
    return square


def rarest_group(ledger, context):
    """Rounds of the rarest group of a round, at most all rounds; -1 if the round is in no group."""
    groups = ledger.groups
    grouped = False
    rarest = ledger.account.rounds
    row = 0
    for number in range(ledger.layout.count):
        part = part_at(ledger.layout.parts, number)
        for group in range(part.groups):
            if part.groups > 1 and context[part.context + group] != 0.0:
                grouped = True
                rarest = min(rarest, groups[row].count)
            row += 1
    return max(rarest, 0.0) if grouped else -1.0


def available_slack(ledger, square, context, reserved):
    """Slack that a round may use beyond its own B_t.

    It is the slack of the whole ledger minus the amount `reserved` by pending rounds; with groups, at most the slack of
    the groups of the round. A part without groups lends in proportion to the rounds of the rarest of them.
    """
    account, groups, total = ledger.account, ledger.groups, ledger.total
    discount = ledger.layout.discount
    free = discount * discount * (account.budget - square) - reserved
    rarest = rarest_group(ledger, context)
    if rarest >= 0.0 and free > 0.0:
        share = min((rarest + 1.0) / (account.rounds + 1.0), 1.0)
        own = -share * reserved
        row = 0
        for number in range(ledger.layout.count):
            part = part_at(ledger.layout.parts, number)
            for group in range(part.groups):
                if context[part.context + group] != 0.0:
                    left = groups[row].budget
                    for i in range(part.start + group * part.size, part.start + (group + 1) * part.size):
                        if part.one_sided == 0 or total[i] > 0.0:
                            left -= total[i] * total[i]
                    own += discount * discount * left * (1.0 if part.groups > 1 else share)
                row += 1
        free = min(free, own)
    return max(free, 0.0)


def write_certificate(ledger, square, free, linear, bound, certificate):
    """Write the certificate of a forecast: `linear` is its largest 2 <S_+, payoff> + ||payoff||^2, `bound` its B_t."""
    account, discount = ledger.account, ledger.layout.discount
    overdraft = max(linear - bound, 0.0)
    carried = discount * discount * square
    certificate.worst = carried + linear
    certificate.bound = bound
    certificate.allowed = carried + free + bound
    certificate.holds = 1.0 if overdraft <= free + ROUNDING * (account.budget + bound) else 0.0
    certificate.overdraft = min(overdraft, free)
    certificate.root = sqrt(max(bound, ledger.layout.general))
    certificate.roots_then = account.roots
    certificate.rounds_then = account.rounds
    weight = discount * account.weight + 1.0
    before = discount * discount * max(account.budget - account.excess, 0.0) + bound
    certificate.promised = sqrt(before) / weight
    certificate.excess = 0.0
    if certificate.holds == 0.0 or account.excess > 0.0:
        # the excess of earlier rounds, and the largest excess of this one
        reach = discount * discount * account.budget + bound + max(overdraft - free, 0.0)
        certificate.excess = max(sqrt(reach) - sqrt(before), 0.0) / weight


def forget(ledger):
    """Discount the sums and the accounts."""
    account, groups, total = ledger.account, ledger.groups, ledger.total
    discount = ledger.layout.discount
    for i in range(ledger.layout.size):
        total[i] *= discount
    for i in range(ledger.layout.groups):
        groups[i].budget *= discount * discount
        groups[i].excess *= discount * discount
        groups[i].count *= discount
    account.budget *= discount * discount
    account.excess *= discount * discount
    account.weight *= discount


def settle(ledger, context, reserved, payoff, certificate):
    """Add the core payoff of a round; `reserved` is the overdraft of the other pending rounds.

    With d outcomes settled since its forecast, S has moved by at most d sqrt(B), and the budget grows by the cross term
    of the squares, 2 d B; so the squared bound is at most B (T + C + 2 sum d) / T^2. The excess is the amount beyond
    the budget, if it is more than rounding; a round that adds an excess did not hold.
    """
    account, groups, total = ledger.account, ledger.groups, ledger.total
    if ledger.layout.discount < 1.0:
        forget(ledger)
    account.budget += certificate.bound + 2.0 * certificate.root * (account.roots - certificate.roots_then)
    account.delay += account.rounds - certificate.rounds_then
    account.roots += certificate.root
    account.rounds += 1.0
    account.weight += 1.0
    account.held += certificate.holds
    row = 0
    square = 0.0
    for number in range(ledger.layout.count):
        part = part_at(ledger.layout.parts, number)
        for group in range(part.groups):
            c = context[part.context + group]
            own = 0.0
            for i in range(part.size):
                j = part.start + group * part.size + i
                if c != 0.0:
                    total[j] += ledger.layout.scale[number] * c * payoff[ledger.layout.places[part.places + i]]
                if part.one_sided == 0 or total[j] > 0.0:
                    own += total[j] * total[j]
            square += own
            # with d outcomes settled since the forecast, the sum of the group has moved by at most d roots of its bound
            late = account.rounds - 1.0 - certificate.rounds_then
            book = group_account_at(groups, row)
            book.budget += (c * c + 2.0 * fabs(c) * late) * ledger.layout.bounds[number]
            book.count += fabs(c)
            excess = own - book.budget
            if excess > ROUNDING * book.budget:
                book.excess += excess
            book.budget += max(excess, 0.0)
            row += 1
    excess = square - (account.budget - reserved)
    if excess > ROUNDING * account.budget:
        # a certificate that the outcome contradicts did not hold: a function had a peak between the points evaluated
        account.held -= certificate.holds
        account.excess += excess
    account.budget += max(excess, 0.0)


def miscalibration(ledger):
    """Norm of the mean payoff, ||S_T||_+ / T; zero before any outcome."""
    return sqrt(squared_norm(ledger)) / max(ledger.account.weight, 1.0)


# --- entries from Python: the same on numpy arrays


def combine_arrays(ledger, context, cumulative, factors):
    """Cumulative payoff as a round sees it, and the factors of its squares."""
    combine(ledger, readable_of(context), numbers_of(cumulative), numbers_of(factors), len(cumulative))


def available_slack_arrays(ledger, square, context, reserved):
    """Slack that a round may use beyond its own B_t."""
    return available_slack(ledger, square, readable_of(context), reserved)


def write_certificate_arrays(ledger, square, free, linear, bound, certificate):
    """Write the certificate of a forecast."""
    write_certificate(ledger, square, free, linear, bound, as_certificate(numbers_of(certificate)))


def settle_arrays(ledger, context, reserved, payoff, certificate):
    """Add the core payoff of a round."""
    settle(ledger, readable_of(context), reserved, readable_of(payoff), as_certificate(readable_of(certificate)))
