"""The no-regret construction of the paper's appendix D."""

from orcast.paper.partition.recalibrator import CellReport, PartitionedRecalibrator

__all__ = ["CellReport", "PartitionedRecalibrator"]
