"""What a dense round asks of a way to play it, and the logit equilibrium as one such way."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from orcast.oracles import _dense, _play
from orcast.oracles.hand import STRICT_STEPS, Hand
from orcast.payoffs import Board

Array = NDArray[np.float64]

EASY, EASY_STEPS = 0.01, 8
# Labels may be alike, cells of a line are not.
UNLIKE = 0.02


class Deal(NamedTuple):
    """What is known of a round besides the ledger."""

    board: Board
    prior: Array  # masses expected on the cells
    warm: Array  # log masses to start at
    last: Array  # masses of the last settled round, or nothing
    pending: float  # outcomes outstanding
    rounds: int  # outcomes booked


class Player(Protocol):
    """A way to play a round: forecasts are given to the hand, which judges them and keeps the best."""

    temperature: float  # the usual one, or 1 where there is none
    remembers: bool  # whether it wants the masses of the last settled round

    def play(self, hand: Hand, deal: Deal) -> None:
        """Let the hand consider one forecast or more."""
        ...


class LogitPlayer:
    """The equilibrium around the prior, as gentle as the slack rule lets it be; _play.play is the compiled one."""

    remembers = False

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature

    def play(self, hand: Hand, deal: Deal) -> None:
        """At the usual temperature, then lower ones, then along the branch from several priors."""
        mix = deal.prior
        soft = (1.0 + deal.pending) ** _play.SOFTEN
        usual = self.temperature * soft
        log_mix = np.log(np.maximum(mix, 1e-300))
        hand.rescale(mix)
        lp, error = hand.equilibrium(usual, log_mix, deal.warm, EASY, EASY_STEPS, soft)
        if error > 10.0 * EASY:
            cold, cold_error = hand.equilibrium(usual, log_mix, log_mix, EASY, STRICT_STEPS, soft)
            if cold_error < error:
                lp = cold
        hand.consider(lp, usual)
        if hand.missing > 0.0:
            hand.descend(usual, log_mix, lp)
        board = deal.board
        even = np.full(mix.size, -math.log(mix.size))
        expert = np.log(np.maximum(board.expert, 1e-12)) if board.expert.size else even
        for log_prior in (log_mix, even, expert):
            if hand.missing > 0.0 and mix.size <= _dense.MOST_CELLS:
                hand.follow(10.0 * usual, log_prior, 0.0 if board.ordered else UNLIKE)
            if hand.missing > 0.0 and log_prior is not log_mix:
                hand.descend(1e3 * min(usual, 10.0), log_prior, log_prior)
