"""Store of many series: their recalibrators, each round, and each outcome with the time when it was known.

`orcast.open` opens one.  Each call is one transaction: it happens as a whole or not at all, and processes take turns.
A call that is repeated (same id and forecast; same id and outcome) changes nothing and gets the same answer.
"""

from orcast.store.series import StoredSeries
from orcast.store.stored import Store, open
from orcast.store.tables import StoredRound

__all__ = ["Store", "StoredRound", "StoredSeries", "open"]
