"""Keep probabilistic forecasts calibrated on any sequence of outcomes.

The names are those of `__init__.pyi`; their modules are imported when first used, so that `import orcast` costs next to
nothing.
"""

from orcast.lazy import lazy_names

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_names(__name__)
