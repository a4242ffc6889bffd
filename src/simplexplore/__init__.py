"""Find the best mix of arms under linear constraints, with a stated confidence.

The public names are listed here and imported when they are first used, so that
``import simplexplore`` costs almost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from simplexplore import catalog, ratings
    from simplexplore.bound import Bound, lower_bound
    from simplexplore.client import connect
    from simplexplore.constraints import Constraint
    from simplexplore.errors import (
        AccessError,
        ConflictError,
        ConstraintError,
        InfeasibleError,
        MeansError,
        NotConvergedError,
        ProblemError,
        PullError,
        RewardError,
        ServiceError,
        SettingError,
        SimplexploreError,
        StoppedError,
        StoreError,
        StudyError,
        TooLargeError,
        UnknownStudyError,
    )
    from simplexplore.explorer import Explorer
    from simplexplore.families import Bernoulli, Bounded, Gaussian, Poisson
    from simplexplore.problem import Problem
    from simplexplore.pulls import Pull, Reward, Told
    from simplexplore.results import Results, load_results, save_results
    from simplexplore.runner import simulate
    from simplexplore.samplers import SAMPLERS
    from simplexplore.stopping import THRESHOLDS
    from simplexplore.study import Study
else:
    _HOME = {
        "AccessError": "errors",
        "Bernoulli": "families",
        "Bound": "bound",
        "Bounded": "families",
        "ConflictError": "errors",
        "Constraint": "constraints",
        "ConstraintError": "errors",
        "Explorer": "explorer",
        "Gaussian": "families",
        "InfeasibleError": "errors",
        "MeansError": "errors",
        "NotConvergedError": "errors",
        "Poisson": "families",
        "Problem": "problem",
        "ProblemError": "errors",
        "Pull": "pulls",
        "PullError": "errors",
        "Results": "results",
        "Reward": "pulls",
        "RewardError": "errors",
        "SAMPLERS": "samplers",
        "ServiceError": "errors",
        "SettingError": "errors",
        "SimplexploreError": "errors",
        "StoppedError": "errors",
        "StoreError": "errors",
        "Study": "study",
        "StudyError": "errors",
        "THRESHOLDS": "stopping",
        "Told": "pulls",
        "TooLargeError": "errors",
        "UnknownStudyError": "errors",
        "connect": "client",
        "load_results": "results",
        "lower_bound": "bound",
        "save_results": "results",
        "simulate": "runner",
    }

    _MODULES = ("catalog", "ratings")

    def __getattr__(name):
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *_HOME, *_MODULES})


__all__ = [
    "SAMPLERS",
    "THRESHOLDS",
    "AccessError",
    "Bernoulli",
    "Bound",
    "Bounded",
    "ConflictError",
    "Constraint",
    "ConstraintError",
    "Explorer",
    "Gaussian",
    "InfeasibleError",
    "MeansError",
    "NotConvergedError",
    "Poisson",
    "Problem",
    "ProblemError",
    "Pull",
    "PullError",
    "Results",
    "Reward",
    "RewardError",
    "ServiceError",
    "SettingError",
    "SimplexploreError",
    "StoppedError",
    "StoreError",
    "Study",
    "StudyError",
    "Told",
    "TooLargeError",
    "UnknownStudyError",
    "__version__",
    "catalog",
    "connect",
    "load_results",
    "lower_bound",
    "ratings",
    "save_results",
    "simulate",
]
