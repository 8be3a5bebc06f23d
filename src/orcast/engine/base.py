"""What an oracle is: options that can be bound to a space and a payoff, which gives an engine that plays rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from orcast.engine.bound_payoff import BoundPayoff
from orcast.ledger import Guarantee, Ledger
from orcast.spaces import Space

Array = NDArray[np.float64]

LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 1e-6, 1e12
# Of a search for a forecast that holds, where the usual one does not.
USUAL_EFFORT, MOST_EFFORT = 12, 1000


class Learning(NamedTuple):
    """Corrections of the base forecast before the last layer.

    committee : whether there is a committee, on ordered spaces
    pooled : whether its members learn over a pool too
    finite : options of the members on finite spaces, in the columns of `kernels.records`
    """

    committee: bool = False
    pooled: bool = False
    finite: Array = np.empty((0, 3))


NO_LEARNING = Learning()


class Engine(Protocol):
    """A ledger and a committee, which run rounds; a record is what a round keeps until its outcome comes."""

    bound_payoff: BoundPayoff

    @property
    def space(self) -> Space:
        """Where the outcomes lie."""
        ...

    @property
    def runs(self) -> bool:
        """Whether whole histories can be played in one compiled loop."""
        ...

    def run(
        self,
        experts: Array,
        features: Sequence[Any] | None,
        outcomes: Array,
        levels: Array,
        *,
        number: float = 0.0,
    ) -> tuple[Array, Array]:
        """Play a whole history, if it `runs`: what was played, and the log of each round.

        An engine on an ordered space also takes `coins`, a number between 0 and 1 for each round.
        """
        ...

    @property
    def ledger(self) -> Ledger:
        """What is owed so far."""
        ...

    def predict(
        self,
        experts: Array | None,
        features: Any = None,
        *,
        pending: float = 0.0,
        reserved: float = 0.0,
        number: float = 0.0,
    ) -> Any:
        """Compute round `number` around the experts' rows; changes nothing that an outcome would change."""
        ...

    def update(self, record: Any, y: Any, *, reserved: float = 0.0, late: float = 0.0) -> None:
        """Settle the outcome of a round; `late` others were issued before it was known."""
        ...

    def payoff(self, record: Any, y: Any) -> Array:
        """The payoff of an outcome, before contexts and weights."""
        ...

    def context_of(self, record: Any) -> Array:
        """The context that a round has."""
        ...

    def forecast(self, record: Any) -> Any:
        """What users see of a round."""
        ...

    def guarantee(self) -> Guarantee:
        """What was promised and what was kept."""
        ...

    def arrays(self) -> dict[str, Array]:
        """Everything that is carried from round to round."""
        ...

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take over what `arrays` of an equal engine gave."""
        ...

    def restored_record(self, arrays: dict[str, NDArray[Any]], features: Any) -> Any:
        """A waiting round from its arrays."""
        ...


class Oracle(Protocol):
    """Options of a way to play; immutable, and saved as plain data."""

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> Engine:
        """An engine with an empty ledger; `sizes` are those of the parts, where a saved state knows them."""
        ...

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        ...
