"""Any classifier of River's, recalibrated."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
from river import base

from orcast.engine import Oracle
from orcast.integrations.common import FeatureReader
from orcast.integrations.river.pending import PendingBook, PendingForecast, able, game_of, most_pending
from orcast.ledger import Guarantee
from orcast.payoffs import Payoff
from orcast.spaces import Binary, Labels
from orcast.validation import short


class RiverClassifier(base.Wrapper[base.Classifier], base.Classifier):
    """A classifier around any classifier of River's, whose probabilities stay calibrated on any stream.

    Around a binary classifier the outcomes are True and False.  Around any other they are the ``labels``.  Without
    these they are the labels that have come so far, and each new one begins a new game, with a new guarantee: name them
    if you can.  A model that says labels only is taken to be sure of them.  ``payoff``, ``oracle`` and ``memory`` are
    those of :class:`orcast.Recalibrator`; of two labels, in their order, the game is about the second (``Binary``).

    ``learn_one(x, y)``, ``id=`` and ``max_pending`` are as for :class:`Recalibrated`.

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
        self.model = able(model, "learn_one", "predict_one", what="classifier")
        self.labels = labels
        self.payoff, self.oracle, self.memory = payoff, oracle, memory
        self.max_pending = most_pending(max_pending)
        self._grows = labels is None and self._multiclass
        self._known: tuple[Any, ...] = ()
        self._places: dict[Any, int] = {}
        self._desk: PendingBook | None = None
        if labels is not None:
            self._begin(Labels(labels).labels)
        elif not self._grows:
            self._begin((False, True))
        self._features = FeatureReader(payoff) or None

    def _begin(self, labels: tuple[Any, ...]) -> None:
        """A game with these labels; with fewer than two there is nothing to forecast."""
        if len(labels) > 1:
            space = Binary() if len(labels) == 2 else Labels(labels)
            game = game_of(space, self.payoff, self.oracle, self.memory)
            self._desk = PendingBook(game, self.max_pending)
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
    def guarantee(self) -> Guarantee:
        """What was promised and what was kept, since the last new label."""
        if self._desk is None:
            raise ValueError(f"expected two labels or more, got {len(self._known)} so far")
        return self._desk.game.guarantee

    @property
    def pending(self) -> int:
        """How many forecasts wait for their outcome."""
        return 0 if self._desk is None else len(self._desk)

    def predict_proba_one(
        self, x: dict[base.typing.FeatureName, Any], *, id: Hashable = None, **kwargs: Any
    ) -> dict[base.typing.ClfTarget, float]:
        """The calibrated probability of each label."""
        pending_book = self._desk
        if pending_book is None:
            return dict.fromkeys(self._known, 1.0)
        entry = pending_book.find(x, id)
        if entry is None or entry.known != pending_book.known or kwargs or id is not None:
            entry = self._issue(pending_book, entry, x, id, kwargs)
        if len(self._known) == 2:
            no, yes = self._known
            p = float(entry.forecast)
            return {no: 1.0 - p, yes: p}
        return dict(zip(self._known, entry.forecast.mass.tolist(), strict=True))

    def learn_one(
        self, x: dict[base.typing.FeatureName, Any], y: base.typing.ClfTarget, *, id: Hashable = None, **kwargs: Any
    ) -> None:
        """Score the forecast that was issued for ``x``, and teach the model."""
        place = self._places.get(y)
        if place is None:
            place = self._new(y)
        pending_book = self._desk
        if pending_book is None:
            self.model.learn_one(x, y, **kwargs)
            return
        entry = pending_book.find(x, id)
        if entry is None:
            pending_book.look_out(x)
            entry = self._issue(pending_book, None, x, id, {})
        self.model.learn_one(x, y, **kwargs)
        pending_book.settle(entry, place)

    def _new(self, y: Any) -> int:
        """The place of a label that was not known: it begins a new game."""
        label = y.item() if isinstance(y, np.generic) else y
        if not self._grows:
            raise ValueError(f"expected one of the labels {short(list(self._known))}, got {short(label)}")
        self._begin((*self._known, label))
        return len(self._known) - 1

    def _issue(
        self, pending_book: PendingBook, old: PendingForecast | None, x: Any, name: Hashable, kwargs: Any
    ) -> PendingForecast:
        try:
            said = self.model.predict_proba_one(x, **kwargs)
        except NotImplementedError:
            said = {self.model.predict_one(x, **kwargs): 1.0}
        told: Any
        if len(self._known) == 2:
            no, yes = self._known
            p, q = said.get(yes, 0.0), said.get(no, 0.0)
            told = p / (p + q) if p + q > 0.0 else 0.5
        else:
            masses = [said.get(label, 0.0) for label in self._known]
            total = sum(masses)
            told = [mass / total if total > 0.0 else 1.0 / len(masses) for mass in masses]
        return pending_book.issue(old, told, 0.0, self._features and self._features.of(x), x, name)
