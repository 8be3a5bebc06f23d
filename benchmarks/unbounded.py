"""Without bounds: the streams of the table and of the yardstick on a Line, beside the same on their Interval."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import orcast as oc
from benchmarks import quality, yardstick
from benchmarks.results import Line, Remark, geometric_mean
from benchmarks.streams import Case, play, score
from orcast import datasets as experts
from orcast.paper.experiments import data

TITLE = "Unbounded: the same streams on Line()"
QCE_LIMIT, MARGIN = 0.004, 0.02


def cases() -> Iterator[Case]:
    names = [name for name in ("wind", "sunspots") if name in data.available()] or ["humidity"]
    for name in names:
        for expert in experts.EXPERTS:
            yield quality.as_case(experts.stream(data.load(name), expert))
    place = os.environ.get(yardstick.VARIABLE)
    if place:
        for file in yardstick.stream_files(Path(place)):
            if not file.name.startswith(yardstick.BINARY):
                yield yardstick.read(file)


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    yield Remark(f"limits, not targets: QCE {QCE_LIMIT:g}, pinball that on the Interval + {MARGIN:g}")
    beyond, ratios = [], []
    for case in cases():
        before = score(case, case.quantiles)
        bounded, _ = play(case, case.reveal)
        free, promise = play(case, case.reveal, oc.Line())
        inside, outside = score(case, bounded), score(case, free)
        ratios.append((inside.relative, outside.relative))
        note = f"Interval {inside.qce:.4f}, expert {before.qce:.4f}; held {promise.held:.1%}; "
        note += f"worst rolling {outside.worst:.2f}, Interval {inside.worst:.2f}"
        yield Line(case.name, "QCE", outside.qce, note=note)
        note = f"Interval {inside.relative:.3f}; 90% band holds {outside.coverage:.1%}, Interval {inside.coverage:.1%}"
        yield Line(case.name, "pinball / expert's", outside.relative, form=".3f", note=note)
        if outside.qce > QCE_LIMIT:
            beyond.append(f"{case.name} (QCE {outside.qce:.4f})")
        if outside.relative > inside.relative + MARGIN:
            beyond.append(f"{case.name} (pinball {outside.relative:.3f}, Interval {inside.relative:.3f})")
    inner, outer = (geometric_mean(each) for each in zip(*ratios, strict=True))
    yield Line("geometric mean", "pinball / expert's", outer, form=".3f", note=f"Interval {inner:.3f}")
    yield Remark(f"beyond these limits: {', '.join(beyond) or 'none'}")
