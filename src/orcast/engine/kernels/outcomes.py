"""What each of many outcomes would settle: for whoever looks for the worst of them."""

from __future__ import annotations

import numpy as np

from orcast.engine.kernels.cells import locate
from orcast.engine.kernels.equilibrium import payoff
from orcast.engine.kernels.records import CellRow, RoundInfo
from orcast.jit import entry_kernel


@entry_kernel
def payoffs(rules, round, places, witnesses, out):
    """The core payoff at each place, a row each; `witnesses` has those of each place."""
    n = int(round.info[RoundInfo.CELLS])
    one = np.empty(out.shape[1])
    for i in range(places.shape[0]):
        k = locate(places[i], round.cells[CellRow.LEFT], round.cells[CellRow.RIGHT], n)
        payoff(rules, round, places[i], k, witnesses[i], one)
        for j in range(one.shape[0]):
            out[i, j] = one[j]
