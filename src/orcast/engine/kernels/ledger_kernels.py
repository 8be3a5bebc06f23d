"""The functions of the ledger, compiled."""

from __future__ import annotations

from orcast import ledger
from orcast.jit import kernel

squared_norm = kernel(ledger.squared_norm)
combine = kernel(ledger.combine)
available_slack = kernel(ledger.available_slack)
write_certificate = kernel(ledger.write_certificate)
settle = kernel(ledger.settle)
mean_size = kernel(ledger.mean_size)
