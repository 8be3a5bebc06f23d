"""Store of many series: their recalibrators, each round, and each outcome with the time when it was known.

The interface, for a service or a loop in several processes:

    store = oc.open("sqlite:///wind.db")            # or a path, or "postgresql://user@host/database"
    series = store.series("wind", space=oc.Interval(0, 36_000))  # created by the first process that opens it

    p = series.predict({0.1: 8_100, 0.5: 9_000}, id="14:00")     # as of a Recalibrator
    series.update(9_240, id="14:00")
    series.revise(9_310, id="14:00")                # a corrected outcome: the series is replayed
    series.drop("15:00"); series.pending; series.guarantee

    store.rounds("wind", as_of="2026-03-03")        # a frame of what was forecast and known
    store.close()

Each call is one transaction: it happens as a whole or not at all, and processes take turns.  A call that is repeated
(same id and forecast; same id and outcome) changes nothing and gets the same answer.
"""

from orcast.store.series import StoredSeries
from orcast.store.stored import Store, open
from orcast.store.tables import StoredRound

__all__ = ["Store", "StoredRound", "StoredSeries", "open"]
