import gc
import os
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# what is tested is what is played once kernels are compiled; tests/jit is about the time before that
os.environ.setdefault("ORCAST_KERNELS", "compiled")
# Spark lives for a minute here: what Java's second compiler and its collectors do for later comes too late
os.environ.setdefault(
    "PYSPARK_SUBMIT_ARGS", "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell"
)

# how long it takes to draw examples depends on what else the machine does
PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("gate", max_examples=20, derandomize=True, **PATIENT)
settings.register_profile("thorough", max_examples=500, **PATIENT)
settings.load_profile("gate")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Workers share the kernels out, the largest first: else all of them would wait for the one that began a kernel."""
    if hasattr(session.config, "workerinput") and os.environ["ORCAST_KERNELS"] == "compiled":
        from orcast.jit import background, cache
        from orcast.jit.registry import reached_from
        from orcast.warm import wanted

        for one in sorted(wanted(), key=lambda one: -len(reached_from(one.entry.source))):
            with cache.lock(one.key, wait=False) as free:
                pass
            if free and not background.compile_here(one):
                return  # there is no compiler


def pytest_collection_finish() -> None:
    """What was collected stays: no garbage collection has to walk through it again."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Checks of other libraries draw from the global generators: they draw the same each time."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
