"""The paper's algorithms: ORCA, the exact oracles of appendix C, the value bound of appendix E.

Names are listed in `__init__.pyi`.
"""

from orcast.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
