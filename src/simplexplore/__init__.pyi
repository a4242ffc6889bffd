"""The public names, each with its home, as `__init__.py` has them."""

from .bound.result import Bound as Bound
from .client.remote_study import connect as connect
from .errors import (
    AccessError as AccessError,
)
from .errors import (
    ConflictError as ConflictError,
)
from .errors import (
    ConstraintError as ConstraintError,
)
from .errors import (
    InfeasibleError as InfeasibleError,
)
from .errors import (
    MeansError as MeansError,
)
from .errors import (
    NotConvergedError as NotConvergedError,
)
from .errors import (
    PausedError as PausedError,
)
from .errors import (
    ProblemError as ProblemError,
)
from .errors import (
    PullError as PullError,
)
from .errors import (
    RewardError as RewardError,
)
from .errors import (
    ServiceError as ServiceError,
)
from .errors import (
    SettingError as SettingError,
)
from .errors import (
    SimplexploreError as SimplexploreError,
)
from .errors import (
    StoppedError as StoppedError,
)
from .errors import (
    StoreError as StoreError,
)
from .errors import (
    StudyError as StudyError,
)
from .errors import (
    TooLargeError as TooLargeError,
)
from .errors import (
    UnknownStudyError as UnknownStudyError,
)
from .errors import (
    UnlikelyError as UnlikelyError,
)
from .exploration.explorer import Explorer as Explorer
from .exploration.forecast import forecast as forecast
from .exploration.forecast import forecast_budget as forecast_budget
from .exploration.lower_bound import lower_bound as lower_bound
from .exploration.stopping import THRESHOLDS as THRESHOLDS
from .exploration.trade_off import trade_off as trade_off
from .problem import catalog as catalog
from .problem.constraint import Constraint as Constraint
from .problem.families import (
    Bernoulli as Bernoulli,
)
from .problem.families import (
    Bounded as Bounded,
)
from .problem.families import (
    Gaussian as Gaussian,
)
from .problem.families import (
    Poisson as Poisson,
)
from .problem.measured import Measured as Measured
from .problem.problem import Problem as Problem
from .problem.question import Question as Question
from .report.bound_figure import plot_bound as plot_bound
from .report.comparison_figure import plot_comparison as plot_comparison
from .report.results_figure import plot_results as plot_results
from .samplers import SAMPLERS as SAMPLERS
from .simulation.blocks import cluster as cluster
from .simulation.compare import (
    Comparison as Comparison,
)
from .simulation.compare import (
    compare as compare,
)
from .simulation.random_instances import random_instances as random_instances
from .simulation.results import (
    Results as Results,
)
from .simulation.results import (
    load_results as load_results,
)
from .simulation.results import (
    save_results as save_results,
)
from .simulation.simulate import simulate as simulate
from .study.pulls import (
    Pull as Pull,
)
from .study.pulls import (
    Reward as Reward,
)
from .study.pulls import (
    Told as Told,
)
from .study.study import Study as Study

__version__: str
