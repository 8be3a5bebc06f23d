"""The no-regret construction of the paper's appendix D."""

from orcast.partition.recalibrator import CellReport, PartitionedRecalibrator

__all__ = ["CellReport", "PartitionedRecalibrator"]
