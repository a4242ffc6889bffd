"""The records of runs with measured limits, for tests of their kernels."""

from engines import engine_for
from simplexplore import Problem
from simplexplore.geometry.faces import simplices
from simplexplore.geometry.polytope import Polytope
from simplexplore.kernels.measured_answer import best_policy, row_evidence, set_values  # noqa: F401
from simplexplore.kernels.measured_search import (  # noqa: F401
    DISTANCE,
    EVIDENCE,
    EVIDENCE_OF_ROWS,
    LOSS,
    LOSS_OF_TRIANGLES,
    LOSS_PER_NAT,
    search,
)
from simplexplore.kernels.records import INSIDE  # noqa: F401


def faces(size, constraints, rows):
    """Faces of the known polytope on which a best policy lies, with so many measured rows."""
    return simplices(Polytope(Problem(size, constraints)), rows)


def records_for(problem):
    """Limits, a run and scratch, as kernels take them."""
    measured, _, run, scratch = engine_for(problem, "top-two", threshold="tilt").workspace.records
    return measured.measured, run, scratch.measured
