"""Bounds with measured limits in words: what tables and pictures both say."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from simplexplore.bound.information import binary_kl
from simplexplore.errors import SettingError
from simplexplore.exploration.measured_safety import promise, safety
from simplexplore.problem.spelling import policy_in_words

from .numbers import number, rough_percent

if TYPE_CHECKING:
    from simplexplore.bound.measured_result import Deciding, MeasuredBound
    from simplexplore.problem.measured import Measured


def good_enough(bound: MeasuredBound) -> str:
    """Say what an answer must be."""
    problem = bound.problem
    rows = " and ".join(f"{row.name} {row.limit}" for row in problem.measured)
    missed = " and ".join(number(row.tolerance) for row in problem.measured if row.tolerance)
    within = f", to within {missed}," if missed else ""
    return f"a mix that keeps {rows}{within} and earns at most {number(problem.epsilon)} less"


def measured_headline(bound: MeasuredBound) -> str:
    """Say in one sentence what it takes to find a mix that is good enough."""
    own, problem = bound.own, bound.problem
    if own.unknowable:
        arms = ", ".join(x.arm for x in own.unknowable)
        return f"No number of samples is enough: limits on samples leave none for {arms}."
    if math.isinf(own.characteristic_time):
        return (
            "No number of samples is enough: the best mix is at a measured limit, or others tie "
            "with it, and epsilon and the tolerances leave no room. Give epsilon > 0 and, where "
            "no mix stays clear of the limit, a tolerance."
        )
    amount = number(own.characteristic_time * binary_kl(bound.delta))
    about = f"a cost of {amount}" if problem.has_costs else f"{amount} samples"
    least = f", at least {number(own.lower_bound)}" if own.lower_bound > 0 else ""
    return (
        f"About {about} to find {good_enough(bound)}, with confidence {1 - bound.delta:.10g} "
        f"({problem.scenario}){least}."
    )


def reason(deciding: Deciding, bound: MeasuredBound) -> str:
    """Say what one alternative would be: the limit exceeded, or another mix better."""
    if deciding.limit is not None:
        row = next(row for row in bound.problem.measured if row.name == deciding.limit)
        by = f" by more than {number(row.tolerance)}" if row.tolerance else ""
        return f"it misses {_limit(row)}{by}"
    assert deciding.rival is not None
    words = policy_in_words(deciding.rival, bound.problem.arms, 4)
    exceeded = [
        _limit(row)
        for row, means in zip(bound.problem.measured, bound.measured_means, strict=True)
        if float(row.signed(means) @ deciding.rival) > row.bound
    ]
    kept = f" and keeps {' and '.join(exceeded)}" if exceeded else ""
    return f"{words} earns more{kept}"


def _limit(row: Measured) -> str:
    return f"{row.name} {row.limit}"


def measured_notes(bound: MeasuredBound) -> list[str]:
    """What else there is to know."""
    own, problem = bound.own, bound.problem
    if math.isinf(own.characteristic_time):
        return []
    arms = problem.arms
    earned = number(float(bound.means @ own.answer))
    quickest = policy_in_words(own.answer, arms)
    words = [f"Quickest to be sure of: {quickest}, the answer here, which earns {earned}."]
    if own.least_time > 0:
        more = 100 * (own.characteristic_time / own.least_time - 1)
        words.append(
            f"No answer takes less than {number(own.least_time)} instead of "
            f"{number(own.characteristic_time)} as characteristic time: proven, "
            f"{rough_percent(more)} apart."
        )
    else:
        words.append("How much less another answer could take is not known.")
    if 0 < own.known_limits_time < math.inf:
        times = own.characteristic_time / own.known_limits_time
        words.append(
            f"If the means of measurements were known it would take {rough_percent(100 / times)} "
            "of that."
        )
    if not bound.is_gaussian:
        words.append(
            "Noise counts as Gaussian with half its range as standard deviation: the numbers are "
            "for methods that know no more, and are not a lower bound."
        )
    unknown = [x.name for x in problem.measured if x.sigma == "unknown"]
    if unknown or not problem.rewards.knows_sigma:
        words.append("Sigma is taken as guessed; not knowing it takes more samples.")
    if problem.scenario == "anytime":
        words.append(
            "Samples keep measured limits only as far as these are known: in expectation, at the "
            "upper end of what is plausible. The bound is for shares that keep them as guessed."
        )
        try:
            safety(problem)
            words.append(promise(problem, bound.delta))
        except SettingError as error:
            words.append(f"As it stands, nothing is guaranteed: {error}")
    return words
