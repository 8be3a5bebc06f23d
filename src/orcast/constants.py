"""Constants that several modules share.

Where the compiled and the dense code solve the same problem with different values, both are here.
"""

from __future__ import annotations

import math

# --- learning

# Discount of losses per round.
LOSS_DISCOUNT = 0.998
# An expert's own expectation counts as this many observations of its loss.
OWN_EXPECTATION_WEIGHT = 5.0
# The largest change of a log mass by a warm start.
MAX_TILT = 6.0
# The standard deviation of a Gaussian whose mean absolute value is 1: see `orcast.residuals`.
PER_ABSOLUTE = math.sqrt(math.pi / 2.0)

# Length of the rings of outcomes, which bounds the longest season, and the shortest season, in steps.
LONGEST_SEASON, SHORTEST_SEASON = 368, 4
# Mass of a tail cell over that of its inner neighbour.
TAIL_FALL = 0.6

# --- the equilibrium

# Temperature of the last layer.
USUAL_TEMPERATURE = 8.0
# With n outcomes outstanding the temperature rises by (1 + n)^DELAY_TEMPERATURE: the same correction is applied once
# for each outstanding round before any effect is seen.  A binary forecast is one number, which overshoots less.
DELAY_TEMPERATURE, BINARY_DELAY_TEMPERATURE = 0.85, 0.5
# A mass below this is treated as the limit zero; derivative factors are kept above MIN_SLOPE, so that the Newton matrix
# stays an M-matrix.
TINY_MASS, MIN_SLOPE = 1e-8, 0.1
# Largest Newton step in log mass, and how a rejected step shrinks.
MAX_STEP, SHRINK = 2.0, 0.4
# At the usual temperature: accepted residual, and Newton steps.
EASY, EASY_STEPS = 0.01, 8
# Where the certificate asks for more: residual and Newton steps.  The dense solver has matrices of all derivatives,
# so that its last steps are cheap in number; the compiled one stops where the certificate no longer changes.
STRICT, STRICT_STEPS = 1e-7, 30
DENSE_STRICT, DENSE_STRICT_STEPS = 1e-8, 40
# A residual above this is no equilibrium.
TRUSTED = 1e-3
# Lowering the temperature: the most steps, the ratio of two temperatures beyond which the branch has ended, and the
# lowest temperature, as a share of the usual one.  The dense solver gives up sooner: it follows the branch around its
# fold instead (dense/search.py).
CONTINUATION, CLOSEST_RATIO = 60, 0.98
DENSE_CONTINUATION, DENSE_CLOSEST_RATIO = 40, 0.95
LOWEST = 1e-5
