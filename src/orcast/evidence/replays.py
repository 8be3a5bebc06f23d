"""What else would have come of the same forecasts: without a memory of errors, or had they been issued in blocks."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orcast.evidence.accuracy import difference
from orcast.evidence.base import Evidence
from orcast.evidence.frames import collect
from orcast.evidence.issue_times import blocks_seen

if TYPE_CHECKING:
    from orcast.panel.columns import ColumnLayout
    from orcast.panel.frame_run import FrameOptions

# More forecasts are not played again.
MOST_REPLAYED = 200_000


def with_replays(
    found: Sequence[Evidence], frame: Any, layout: ColumnLayout, options: FrameOptions, workers: int | None = None
) -> list[Evidence]:
    """Evidence of what `orcast.recalibrate` made of a frame, with what other plays of the same frame would have lost.

    The frame is played again without the memory of recent errors (`Committee(trackers=False)`), if anything was
    gained; and if the errors look as if forecasts had been issued in blocks, as forecasts that were.  Frames with more
    than 200,000 forecasts are not.

    >>> import orcast as oc, pandas as pd
    >>> from orcast.panel.columns import find_in
    >>> from orcast.panel.frame_run import FrameOptions
    >>> frame = pd.DataFrame({"ds": range(40), "y": range(40), "q0.1": 0.0, "q0.9": 9.0})
    >>> (evidence,) = with_replays(collect(oc.recalibrate(frame)), frame, find_in(frame), FrameOptions())
    >>> evidence.without_memory > difference(evidence).after  # a trend: the last errors say most
    True
    """
    from orcast.engine import Committee

    quantiles = [evidence for evidence in found if evidence.kind == "quantiles" and evidence.after is not None]
    if not quantiles or sum(evidence.rows for evidence in found) > MOST_REPLAYED:
        return list(found)
    losses: dict[str, dict[str, float]] = {}
    gained = [e for e in quantiles if (change := difference(e)) is not None and change.after < change.before]
    if gained:
        losses["without_memory"] = _replayed(frame, layout, options._replace(oracle=Committee(trackers=False)), workers)
    lengths = {blocks_seen(evidence) for evidence in quantiles} - {None}
    for length in lengths:
        timing = options.timing._replace(issued_every=length)
        played = _replayed(frame, layout, options._replace(timing=timing), workers)
        losses.setdefault("in_blocks", {}).update(
            {e.model: played[e.model] for e in quantiles if blocks_seen(e) == length and e.model in played}
        )
    return [
        dataclasses.replace(
            evidence,
            without_memory=losses.get("without_memory", {}).get(evidence.model),
            in_blocks=losses.get("in_blocks", {}).get(evidence.model),
        )
        for evidence in found
    ]


def _replayed(frame: Any, layout: ColumnLayout, options: FrameOptions, workers: int | None) -> dict[str, float]:
    """The mean loss of each model after another play."""
    from orcast.panel.frame import Frame
    from orcast.panel.frame_run import FrameRun

    with warnings.catch_warnings():
        # what there is to say of the frame has been said
        warnings.simplefilter("ignore", UserWarning)
        run = FrameRun(frame if isinstance(frame, Frame) else Frame(frame), layout, options.checked())
        run.play(workers)
        told = {"low": options.low, "high": options.high, **run.timing._asdict()}
        after = collect(run.result(False), layout, **told)
    changes = {evidence.model: difference(evidence) for evidence in after if evidence.kind == "quantiles"}
    return {model: change.after for model, change in changes.items() if change is not None}
