"""The public names, each with its home; `__init__.py` reads this list."""

from .bound.bound import lower_bound as lower_bound
from .bound.random_instances import random_instances as random_instances
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
from .exploration.expected_samples import expected_samples as expected_samples
from .exploration.explorer import Explorer as Explorer
from .exploration.stopping import THRESHOLDS as THRESHOLDS
from .problem import (
    catalog as catalog,
)
from .problem import (
    ratings as ratings,
)
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
from .report.bound_plot import plot_bound as plot_bound
from .report.comparison_plot import plot_comparison as plot_comparison
from .report.results_plot import plot_results as plot_results
from .samplers import SAMPLERS as SAMPLERS
from .simulation.cluster import cluster as cluster
from .simulation.compare import (
    Comparison as Comparison,
)
from .simulation.compare import (
    compare as compare,
)
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
