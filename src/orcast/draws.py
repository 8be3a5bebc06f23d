"""Random draws: one number between 0 and 1 per round, determined by a seed and the number of the round.

The counter-based generator SplitMix64 (Steele, Lea and Flood 2014): a state only keeps the seed, and a draw depends
neither on the order of rounds nor on the number of workers. Outcomes must be chosen without knowledge of the seed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orcast.serialise import plain_id
from orcast.validation import short

Array = NDArray[np.float64]

# Seeds are smaller: such numbers are exact in any file.
MOST_SEED = 2**53
_ALL, _STEP = 2**64 - 1, 0x9E3779B97F4A7C15


def seed_of(randomised: object) -> int | None:
    """Seed, given or drawn from a generator; None without random draws."""
    if randomised is None:
        return None
    if isinstance(randomised, np.random.Generator):
        return int(randomised.integers(MOST_SEED))
    if isinstance(randomised, (int, np.integer)) and not isinstance(randomised, bool) and 0 <= randomised < MOST_SEED:
        return int(randomised)
    raise TypeError(
        f"expected a seed from 0 to 2**53 or numpy.random.default_rng(...) as randomised, got {short(randomised)}"
    )


def derived_seed(seed: int, *key: Hashable) -> int:
    """Seed of one of many recalibrators, by its key."""
    text = json.dumps([seed, *map(plain_id, key)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") % MOST_SEED


def uniform_draws(seed: int, first: int, count: int) -> Array:
    """Draws of `count` rounds from round `first` on.

    >>> uniform_draws(7, 1, 4).round(2).tolist()
    [0.72, 0.65, 0.55, 0.6]
    """
    return np.array([uniform_draw(seed, number) for number in range(first, first + count)], dtype=np.float64)


def uniform_draw(seed: int, number: int) -> float:
    """Draw of one round, strictly between 0 and 1."""
    # 52 bits, centred between two numbers, so never 0 or 1
    return ((_mixed((start_of(seed) + number * _STEP) & _ALL) >> 12) + 0.5) / 2.0**52


@lru_cache(maxsize=1024)
def start_of(seed: int) -> int:
    """Whole number at which the draws of a seed begin."""
    return _mixed((seed + _STEP) & _ALL)


def _mixed(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _ALL
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _ALL
    return z ^ (z >> 31)
