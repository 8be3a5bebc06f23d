import gc
import os

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
