"""Samples that cost more than others: shares of samples, and shares of what is spent on them.

Solvers work with what is spent, u_a = c_a w_a / (c . w), because the information that money buys is
concave in it and the least cost is the least time there (docs/theory/costs_and_limits.md).
Tracking and limits count pulls. Where all samples cost the same, both are one.
"""

from __future__ import annotations

from .kernel import kernel
from .records import RunConfig, Vector


@kernel
def to_spend(config: RunConfig, w: Vector) -> None:
    """From shares of samples to shares of what is spent, in place."""
    if config.priced:
        total = 0.0
        for a in range(config.size):
            w[a] *= config.costs[a]
            total += w[a]
        for a in range(config.size):
            w[a] /= total


@kernel
def to_shares(config: RunConfig, w: Vector) -> None:
    """From shares of what is spent to shares of samples, in place."""
    if config.priced:
        total = 0.0
        for a in range(config.size):
            w[a] /= config.costs[a]
            total += w[a]
        for a in range(config.size):
            w[a] /= total
