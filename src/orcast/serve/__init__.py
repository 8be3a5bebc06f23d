"""HTTP service on a store: an ASGI application with a page for people (`orcast serve`)."""

from orcast.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
