"""Keep probabilistic forecasts calibrated on any sequence of outcomes.

Names are listed in `__init__.pyi`; their modules are imported on first use, so that `import orcast` is fast.
"""

from orcast.lazy import lazy_names

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_names(__name__)
