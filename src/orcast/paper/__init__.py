"""The paper's own algorithms: ORCA, the exact oracles of its appendix C, the constructions of appendices D and E."""

from importlib import import_module
from typing import Any

_MODULE_OF = {
    "Adam": "orca",
    "BinaryRoot": "exact",
    "ConformalLevel": "conformal",
    "DecisionGame": "exact",
    "Differentiable": "autodiff",
    "Family": "families",
    "GaussianMixture": "families",
    "GibbsCandesLevel": "conformal",
    "JaxFamily": "autodiff",
    "MomentHull": "exact",
    "MonteCarlo": "orca",
    "Orca": "orca",
    "PartitionedRecalibrator": "partition",
    "SimplexGrid": "exact",
    "Softmax": "families",
    "TwoCells": "exact",
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def oracle_from_plain(data: dict[str, Any]) -> Any:
    """An oracle from its plain form."""
    from orcast.engine import Committee, Equilibrium

    options = dict(data)
    kind = str(options.pop("kind", None))
    if kind == "Orca":
        return __getattr__(kind).from_plain(options)
    if kind in ("Committee", "Equilibrium"):
        return {"Committee": Committee, "Equilibrium": Equilibrium}[kind](**options)
    if kind == "ConformalLevel" or _MODULE_OF.get(kind) == "exact":
        return __getattr__(kind)(**options)
    raise ValueError(f"expected a known oracle in the state, got {kind!r}")
