"""Probabilities of several labels: a naive Bayes classifier of River that is far too sure of itself.

    python examples/labels.py [--quick] [--out FOLDER]

Seven kinds of ground are told from 18 features of a piece of an outdoor picture.  The classifier takes features that
say nearly the same for independent, so it is nearly always certain, and often wrong.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from river import datasets, naive_bayes

import orcast as oc

LABELS = ["brickface", "cement", "foliage", "grass", "path", "sky", "window"]


def shares(chances: dict[str, float]) -> list[float]:
    """Probabilities in the order of the labels; even ones as long as the classifier knows nothing."""
    row = np.array([chances.get(label, 0.0) for label in LABELS])
    return (row / row.sum() if row.sum() > 0 else np.full(len(LABELS), 1 / len(LABELS))).tolist()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="800 pictures instead of 2,310")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="for the picture (default: here)")
    options = parser.parse_args(arguments)

    model = naive_bayes.GaussianNB()
    recal = oc.Recalibrator(oc.Labels(LABELS))
    before, after, came = [], [], []
    for features, label in datasets.ImageSegments().take(800 if options.quick else 2310):
        given = shares(model.predict_proba_one(features))
        p = recal.predict(given)  # before the label is known
        before.append(given)
        after.append([p.probability(each) for each in LABELS])
        came.append(LABELS.index(label))
        recal.update(label)  # after it
        model.learn_one(features, label)

    said = {"as given": np.array(before), "orcast": np.array(after)}
    places = np.array(came)
    print(f"The most probable of {len(LABELS)} labels, {places.size:,} pictures\n")
    print(f"{'':>10}{'it said':>10}{'right':>10}{'Brier':>10}")
    tops = {}
    for name, rows in said.items():
        top, right = rows.max(axis=1), rows.argmax(axis=1) == places
        tops[name] = top, right.astype(int)
        print(f"{name:>10}{top.mean():>10.1%}{right.mean():>10.1%}{oc.metrics.brier(rows, places).mean():>10.4f}")

    evaluation = oc.Evaluation.of(before, places, after=after, labels=tuple(LABELS))
    oc.plots.reliability(evaluation).save(options.out / "labels.html")
    errors = [oc.metrics.ece(top, right) for top, right in tops.values()]
    print(f"\npicture: {options.out / 'labels.html'}")
    print(f"calibration error of the first label (ECE): {errors[0]:.4f} as given, {errors[1]:.4f} with orcast")


if __name__ == "__main__":
    main()
