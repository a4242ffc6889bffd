"""Find the best mix of arms under linear constraints, with a stated confidence.

Public names are imported when they are first used, so that ``import simplexplore`` costs almost
nothing. ``__init__.pyi`` says the same to type checkers.
"""

from importlib import import_module

__version__ = "0.1.0"

# Where each public name is defined.
_LAZY = {
    **dict.fromkeys((
        "AccessError", "ConflictError", "ConstraintError", "InfeasibleError", "MeansError",
        "NotConvergedError", "PausedError", "ProblemError", "PullError", "RewardError",
        "ServiceError", "SettingError", "SimplexploreError", "StoppedError", "StoreError",
        "StudyError", "TooLargeError", "UnknownStudyError", "UnlikelyError",
    ), "errors"),
    "lower_bound": "exploration.lower_bound", "random_instances": "simulation.random_instances",
    "Bound": "bound.result", "connect": "client.remote_study",
    "Explorer": "exploration.explorer", "forecast": "exploration.forecast",
    "forecast_budget": "exploration.forecast", "trade_off": "exploration.trade_off",
    "THRESHOLDS": "exploration.stopping", "catalog": "problem.catalog",
    "Constraint": "problem.constraint", "Bernoulli": "problem.families",
    "Bounded": "problem.families", "Gaussian": "problem.families", "Poisson": "problem.families",
    "Measured": "problem.measured", "Problem": "problem.problem",
    "Question": "problem.question",
    "plot_bound": "report.bound_figure", "plot_comparison": "report.comparison_figure",
    "plot_results": "report.results_figure",
    "SAMPLERS": "samplers", "cluster": "simulation.blocks",
    "Comparison": "simulation.compare", "compare": "simulation.compare",
    "Results": "simulation.results", "load_results": "simulation.results",
    "save_results": "simulation.results", "simulate": "simulation.simulate", "Pull": "study.pulls",
    "Reward": "study.pulls", "Told": "study.pulls", "Study": "study.study",
}  # fmt: skip

__all__ = [*_LAZY, "__version__"]  # noqa: PLE0604  (names, computed)


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_LAZY[name]}")
    value = globals()[name] = home if name == "catalog" else getattr(home, name)
    return value


def __dir__():
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
