"""Cases of `digests.py`: bounds, which are compared to 1e-9."""

from functools import partial

import digest_runs
import simplexplore as sx
from digest_runs import EXAMPLES, FAMILIES, MEASURED, five


def bound_of(problem, **settings):
    if isinstance(problem, str):
        problem = sx.Problem.from_file(EXAMPLES / problem)
    return sx.lower_bound(problem, **settings).to_dict()


def bounds():
    """What `lower_bound` says: instances, families, settings, ties, degenerate and odd problems."""
    for name in sx.catalog.names():
        yield name, partial(bound_of, sx.catalog.instance(name).problem)
    for file in sorted(EXAMPLES.glob("*.toml")):
        yield file.name, partial(bound_of, file.name)
    for family, (rewards, _) in FAMILIES.items():
        yield f"family {family}", partial(bound_of, five(rewards))
        yield f"epsilon, {family}", partial(bound_of, five(rewards, epsilon=0.1))
    for what, problem in {
        "unknown sigma": five(sx.Gaussian("unknown", sigma_guess=0.5)),
        "costs": five(costs={"a1": 7.0, "a4": 0.5}),
        "budget": five(stop_when={"budget": 300}),
        "regret": five(stop_when={"regret": 0.1}),
        "exploration": five(exploration={"fair": "each >= 0.05", "lab": "a1 + a2 <= 0.4"}),
        "exploration that leaves an arm out": five(exploration={"no": "a1 <= 0"}),
        "ties": five(means=[0.5] * 5),
        "degenerate": five(constraints={"a": "a1 <= 0.5", "b": "a1 + a2 <= 0.5", "c": "a2 <= a1"}),
        "redundant": five(constraints=["a1 <= 0.5", "2*a1 <= 1", "a1 <= 3"]),
        "an equality": five(constraints={"half": "a1 + a2 == 1/2"}),
        "a single point": five(constraints={"all": "each == 0.2"}),
        "an arm forced to zero": five(constraints={"none": "a1 <= 0"}),
        "no limits": five(constraints={}),
        "one arm": sx.Problem(1, means=[1.0]),
        "infeasible": five(constraints={"low": "a1 <= 0.2", "high": "a1 >= 0.3"}),
        "far apart": five(means=[1e6, 1.0, 0.0, -1.0, -1e6]),
    }.items():
        yield what, partial(bound_of, problem)
    for what, table in MEASURED.items():
        problem = sx.Problem(4, means=[1.0, 0.8, 0.5, 0.3], epsilon=0.1, measured={"x": table})
        yield f"measured, {what}", partial(bound_of, problem)


def random_bounds():
    """The same of instances drawn at random."""
    for instance in digest_runs.drawn()[::2]:
        yield instance.name, partial(bound_of, instance.problem)
