"""The paper's own algorithms: ORCA, the exact oracles of its appendix C, the value bound of appendix E.

The names are those of `__init__.pyi`.
"""

from orcast.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
