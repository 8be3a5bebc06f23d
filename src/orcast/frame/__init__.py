"""Many series in a data frame: columns that are found, streams that are played by all cores, a state that goes on.

frame --columns--> layout --streams--> rows in the order of play --play--> answers --> the same frame, and more
"""

from orcast.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
