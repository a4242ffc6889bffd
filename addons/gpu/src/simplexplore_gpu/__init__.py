"""Simulated runs of simplexplore on a GPU: what ``device="gpu"`` imports."""

from .blocks import blocks_by_gpu

__all__ = ["blocks_by_gpu"]
