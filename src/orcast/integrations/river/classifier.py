"""Any classifier of River's, recalibrated."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from river import base

from orcast.engine import Oracle
from orcast.integrations.common import at_least_one
from orcast.integrations.river.pending import PendingBook, checked_model
from orcast.ledger import Guarantee
from orcast.locks import GameLock, Locked, locked
from orcast.payoffs import Payoff
from orcast.recalibrator import Recalibrator
from orcast.spaces import Binary, Labels
from orcast.validation import short


class RiverClassifier(Locked, base.Wrapper[base.Classifier], base.Classifier):
    """A classifier around any classifier of River's, whose probabilities stay calibrated on any stream.

    Around a binary classifier the outcomes are True and False.  Around any other they are the ``labels``.  Without
    these they are the labels seen so far, and each new one begins a new game, with a new guarantee: name them if you
    can.  A model that predicts labels only is taken to be sure of them.  ``payoff``, ``oracle`` and ``memory`` are
    those of :class:`orcast.Recalibrator`; of two labels, in their order, the game is about the second (``Binary``).

    ``learn_one(x, y)``, ``id=`` and ``max_pending`` are as for :class:`RiverRegressor`.

    >>> from river import datasets, linear_model, metrics, preprocessing
    >>> model = RiverClassifier(preprocessing.StandardScaler() | linear_model.LogisticRegression())
    >>> loss = metrics.LogLoss()
    >>> for x, y in datasets.Phishing():
    ...     loss.update(y, model.predict_proba_one(x))
    ...     model.learn_one(x, y)
    >>> loss.get() < 0.3, sorted(model.predict_proba_one(x)), model.guarantee.rounds
    (True, [False, True], 1250)
    """

    def __init__(
        self,
        model: base.Classifier,
        labels: Sequence[base.typing.ClfTarget] | None = None,
        *,
        payoff: Payoff | None = None,
        oracle: Oracle | None = None,
        memory: float | None = None,
        max_pending: int = 1000,
    ) -> None:
        self.lock = GameLock()
        self.model = checked_model(model, "learn_one", "predict_one", kind="classifier")
        self.labels = labels
        self.payoff, self.oracle, self.memory = payoff, oracle, memory
        self.max_pending = at_least_one(max_pending, "max_pending of at least 1")
        self._grows = labels is None and self._multiclass
        self._known: tuple[Any, ...] = ()
        self._places: dict[Any, int] = {}
        self._book: PendingBook | None = None
        if labels is not None:
            self._begin(Labels(labels).labels)
        elif not self._grows:
            self._begin((False, True))

    def _begin(self, labels: tuple[Any, ...]) -> None:
        """A game with these labels; with fewer than two there is nothing to forecast."""
        if len(labels) > 1:
            space = Binary() if len(labels) == 2 else Labels(labels)
            recalibrator = Recalibrator(space, self.payoff, oracle=self.oracle, memory=self.memory)
            self._book = PendingBook(recalibrator, self.max_pending)
        self._known = labels
        self._places = {label: place for place, label in enumerate(labels)}

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, preprocessing, tree

        yield {"model": preprocessing.StandardScaler() | linear_model.LogisticRegression()}
        yield {"model": tree.HoeffdingTreeClassifier()}

    def _unit_test_skips(self) -> set[str]:
        # of several probabilities that keep the promise the nearest is played: two that are as near change places when
        # a model rounds in another order
        return {"check_shuffle_features_no_impact"}

    @property
    @locked
    def guarantee(self) -> Guarantee:
        """What was promised and what was kept, since the last new label."""
        if self._book is None:
            raise ValueError(f"expected two labels or more, got {len(self._known)} so far")
        return self._book.game.guarantee

    @property
    @locked
    def pending(self) -> int:
        """How many forecasts are pending."""
        return 0 if self._book is None else len(self._book)

    @locked
    def predict_proba_one(
        self, x: dict[base.typing.FeatureName, Any], *, id: Hashable = None, **kwargs: Any
    ) -> dict[base.typing.ClfTarget, float]:
        """The calibrated probability of each label."""
        if self._book is None:
            return dict.fromkeys(self._known, 1.0)
        p = self._book.predict(x, id, self._read, kwargs)
        if len(self._known) == 2:
            no, yes = self._known
            share = float(p)
            return {no: 1.0 - share, yes: share}
        return dict(zip(self._known, p.mass.tolist(), strict=True))

    @locked
    def learn_one(
        self, x: dict[base.typing.FeatureName, Any], y: base.typing.ClfTarget, *, id: Hashable = None, **kwargs: Any
    ) -> None:
        """Settle the forecast that was issued for ``x``, and update the model."""
        place = self._places.get(y)
        if place is None:
            place = self._new(y)
        book = self._book
        entry = None if book is None else book.pending_for(x, id, self._read)
        self.model.learn_one(x, y, **kwargs)
        if book is not None and entry is not None:
            book.settle(entry, place)

    def _new(self, y: Any) -> int:
        """The place of a label that was not known: it begins a new game."""
        label = y.item() if isinstance(y, np.generic) else y
        if not self._grows:
            raise ValueError(f"expected one of the labels {short(list(self._known))}, got {short(label)}")
        self._begin((*self._known, label))
        return len(self._known) - 1

    def _read(self, x: Any, **kwargs: Any) -> object:
        """The model's probabilities: that of the second of two labels, or one for each."""
        try:
            found = self.model.predict_proba_one(x, **kwargs)
        except NotImplementedError:
            found = {self.model.predict_one(x, **kwargs): 1.0}
        masses = [found.get(label, 0.0) for label in self._known]
        if len(masses) == 2:
            q, p = masses
            return p / (p + q) if p + q > 0.0 else 0.5
        total = sum(masses)
        return [mass / total if total > 0.0 else 1.0 / len(masses) for mass in masses]
