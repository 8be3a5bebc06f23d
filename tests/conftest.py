import gc
import os
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import definitions

# Spark lives for a minute here: what Java's second compiler and its collectors do for later comes too late
os.environ.setdefault(
    "PYSPARK_SUBMIT_ARGS", "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell"
)

# how long it takes to draw examples depends on what else the machine does
PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("gate", max_examples=20, derandomize=True, **PATIENT)
settings.register_profile("thorough", max_examples=500, **PATIENT)
settings.load_profile("gate")
definitions.define()


def pytest_collection_finish() -> None:
    """What was collected stays: no garbage collection has to walk through it again."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Checks of other libraries draw from the global generators: they draw the same each time."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
