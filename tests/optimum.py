"""The best vertex of a problem, its edges, and what samples tell about them."""

from simplexplore.bound.information import Information
from simplexplore.geometry.polytope import Polytope


def edges_of(problem, means):
    """Edges at the best vertex, exactly."""
    polytope = Polytope(problem)
    return polytope.edges(polytope.optimal_vertex(means))


def information_of(problem, means):
    """Edges, and the information of samples about them."""
    edges = edges_of(problem, means)
    return edges, Information(edges, edges.gaps(means), means, problem.rewards)
