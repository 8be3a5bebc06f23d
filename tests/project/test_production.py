"""Files of examples/production: alerts name metrics that exist, the worker loses nothing, the model runs."""

import json
import re
import runpy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import orcast as oc
from orcast.stream.session import Session

PLACE = Path(__file__).resolve().parents[2] / "examples" / "production"
METRIC = re.compile(r"\borcast_\w+")


def text(name: str) -> str:
    return (PLACE / name).read_text(encoding="utf-8")


def test_alerts_and_dashboard_name_metrics_of_the_service() -> None:
    guard = pytest.importorskip("orcast.serve.guard", reason="the extra 'serve' is not installed")
    metrics = guard.Metrics()
    there = {sample.name for family in metrics.registry.collect() for sample in family.samples} | {
        f"{family.name}_{end}" for family in metrics.registry.collect() for end in ("total", "bucket", "count", "sum")
    }
    used = set(METRIC.findall(text("alerts.yml"))) | set(METRIC.findall(text("grafana/orcast.json")))
    assert used - there == set()
    assert len(used) >= 5


def test_each_alert_has_a_section_in_the_runbook() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    sections = re.findall(r"^### (\w+)$", text("README.md"), re.MULTILINE)
    (group,) = yaml.safe_load(text("alerts.yml"))["groups"]
    assert [rule["alert"] for rule in group["rules"]] == sections
    for rule in group["rules"]:
        assert rule["annotations"]["runbook_url"] == f"README.md#{rule['alert'].lower()}"
    for name in ("compose.yaml", "prometheus.yml", "grafana/provisioning/dashboards/orcast.yaml"):
        assert yaml.safe_load(text(name))
    assert json.loads(text("grafana/orcast.json"))["panels"]


@dataclass
class Message:
    line: bytes
    place: int

    def key(self) -> bytes:
        return b"a"

    def value(self) -> bytes:
        return self.line

    def offset(self) -> int:
        return self.place


def test_worker_answers_a_message_that_comes_again_as_before(tmp_path: Path) -> None:
    answer_all = runpy.run_path(str(PLACE / "kafka_worker.py"))["answer_all"]
    lines = [
        b'{"series": "a", "id": 1, "forecast": {"mean": 4, "sd": 1}}',
        b"nonsense",
        b'{"series": "a", "id": 1, "y": 5}',
    ]
    messages = [Message(line, place) for place, line in enumerate(lines)]
    sent: list[bytes] = []
    done: list[Any] = []
    for again in range(2):  # a worker that died before its offsets were committed
        session = Session(tmp_path / "worker.db")
        answer_all(messages, session, lambda key, answer: sent.append(answer), done.append)
        session.close()
        assert len(done) == 3 * (again + 1)
    assert sent[:3] == sent[3:]
    assert "error" in json.loads(sent[1])
    assert json.loads(sent[2])["guarantee"]["rounds"] == 1


@pytest.mark.filterwarnings("ignore")  # of MLflow
def test_model_of_a_frozen_state_gives_its_quantiles(tmp_path: Path) -> None:
    pytest.importorskip("mlflow", reason="MLflow is not installed")
    import mlflow.pyfunc
    import pandas as pd

    recal = oc.Recalibrator(oc.Interval(0, 100))
    recal.run([oc.Normal(40, 5)] * 50, [60.0] * 50)
    runpy.run_path(str(PLACE / "mlflow_model.py"))["log"](recal, str(tmp_path / "model"))
    model = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    rows = pd.DataFrame({"q0.1": [33.0], "q0.5": [40.0], "q0.9": [47.0]})
    expected = recal.peek({0.1: 33.0, 0.5: 40.0, 0.9: 47.0}).quantile([0.1, 0.5, 0.9])
    assert model.predict(rows).to_numpy()[0].tolist() == expected.tolist()
