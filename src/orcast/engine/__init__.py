"""Engines: the forecast of each round that keeps the ledger within its bound, and the oracles that choose one."""

from orcast.engine.oracles import Committee, Engine, Equilibrium, Oracle

__all__ = ["Committee", "Engine", "Equilibrium", "Oracle"]
