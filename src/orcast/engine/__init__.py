"""Engines: what to forecast so that the outcomes cannot run up a debt, and the oracles of our own that choose one."""

from orcast.engine.base import Engine, Oracle
from orcast.engine.committee import Committee
from orcast.engine.equilibrium import Equilibrium

__all__ = ["Committee", "Engine", "Equilibrium", "Oracle"]
