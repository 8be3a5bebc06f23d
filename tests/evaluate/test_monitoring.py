"""`oc.monitor`: the series of a frame that are in alarm, in the words of their kind of forecast."""

import numpy as np
import pandas as pd

import orcast as oc


def test_monitor_names_the_broken_series_the_worst_first() -> None:
    y = np.random.default_rng(0).normal(size=(20, 100))
    y[[3, 17], -30:] += [[2.0], [3.0]]
    frame = pd.DataFrame({"unique_id": np.repeat(np.arange(20), 100), "ds": list(range(100)) * 20, "y": y.ravel()})
    found = oc.monitor(frame.assign(mean=0.0, sd=1.0))
    assert found["series"][found["alarm"]].tolist() == ["17", "3"]
    assert all(abs(int(since) - 70) <= 15 for since in found["since"][:2])


def test_alarms_of_labels_speak_of_labels() -> None:
    y = np.random.default_rng(0).choice(list("abc"), 200)
    (found,) = oc.monitor(pd.DataFrame({"y": y, "p_a": 0.7, "p_b": 0.2, "p_c": 0.1})).to_dict("records")
    assert found["kind"] == "later labels forecast too seldom"
    assert found["text"].startswith("later labels forecast too seldom since round ")
