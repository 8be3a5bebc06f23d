import gc
import os
import random

import numpy as np
import pytest
from hypothesis import Phase, settings

# what is tested is what is played once kernels are compiled; tests/jit is about the time before that
os.environ.setdefault("ORCAST_KERNELS", "compiled")

settings.register_profile("gate", deadline=None, max_examples=20, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=500)
# `make mutate` asks whether an example fails, not for the simplest one that does
settings.register_profile("mutate", settings.get_profile("gate"), phases=[Phase.explicit, Phase.generate])
settings.load_profile("gate")


def pytest_collection_finish() -> None:
    """What was collected stays: no garbage collection has to walk through it again."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Checks of other libraries draw from the global generators: they draw the same each time."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
