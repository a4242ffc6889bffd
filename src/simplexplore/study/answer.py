"""What a study found, and how to say it."""

from __future__ import annotations

import math

import numpy as np

from simplexplore.exploration.confidence import anytime_confidence
from simplexplore.exploration.engine import Engine
from simplexplore.exploration.plan import Plan
from simplexplore.problem.messages import at_least, at_most, policy_in_words

from .records import Answer


def answer_of(engine: Engine, reason: str | None = None) -> Answer:
    """The policy that is recommended now, with the evidence for it.

    With a `reason` somebody says that it is good enough.
    """
    statistic, threshold = engine.evidence.weakest()
    problem, policy = engine.plan.problem, engine.policy
    means = problem.rewards.from_unit(engine.run.mean[0])
    shares = zip(problem.arms, policy.tolist(), strict=True)
    found: Answer = {
        "policy": policy.tolist() if engine.has_answer else None,
        "mix": {arm: share for arm, share in shares if share > 0},
        "value": float(means @ policy) if engine.has_answer and not problem.question else None,
        "delta": engine.plan.delta,
        "rewards": engine.pulls,
        "statistic": statistic,
        "threshold": threshold,
    }
    if engine.answer is not None:
        found["words"] = engine.answer
    if problem.measured:
        found["infeasible"] = engine.is_infeasible
    if reason is not None:
        found |= {"confidence": None, "regret_bound": None, "by_hand": True, "reason": reason}
    if problem.budget is not None or reason is not None:
        moment = anytime_confidence(engine)
        if moment is not None:
            found["confidence"], lost = moment.confidence, moment.regret_bound
            found["regret_bound"] = lost if math.isfinite(lost) else None
    return found


def in_words(answer: Answer, plan: Plan) -> str:
    """An answer as a sentence."""
    problem = plan.problem
    if answer["policy"] is None:
        limits = " and ".join(row.in_words for row in problem.measured)
        mix = f"no mix keeps {limits}"
    else:
        mix = answer.get("words") or policy_in_words(np.array(answer["policy"]), problem.arms)
    if answer.get("by_hand"):
        return f"Stopped by hand {_sure_after(answer)}: {mix}. Reason: {answer['reason']}"
    if problem.budget is not None:
        return f"The answer, {_sure_after(answer)}: {mix}."
    rule = "" if plan.threshold.is_proven(problem.rewards.name) else ", by a heuristic"
    within = ""
    accepted = problem.regret_goal or problem.epsilon
    if accepted and answer["policy"] is not None:
        kept = " and ".join(
            f"{row.in_words} (tolerance {row.tolerance:g})" for row in problem.measured
        )
        best = f"the best mix that keeps {kept}" if kept else "the best"
        within = f"within {accepted:g} of {best}, "
    sure = f"wrong with probability at most {answer['delta']:g}{rule}"
    return f"The answer, {within}{sure}: {mix}."


def _sure_after(answer: Answer) -> str:
    """What can be said of an answer for which the evidence need not be enough."""
    confidence, lost = answer.get("confidence"), answer.get("regret_bound")
    words = f"after {answer['rewards']:,} samples (delta is not guaranteed)"
    if confidence is not None:
        words += f", with confidence {at_least(confidence)}"
    if lost is not None:
        words += f", and no mix is better by over {at_most(lost)}"
    return words


def withdrawn_in_words(times: int, plan: Plan) -> str | None:
    """What answers that were taken back say of those that were not; None without any."""
    if not times:
        return None
    were = "answer was" if times == 1 else "answers were"
    words = f"{times} earlier {were} taken back, as rewards were voided"
    if not plan.is_proven or plan.problem.budget is not None:
        return f"{words}."
    wrong = at_most(min(1.0, (1 + times) * plan.problem.delta))
    return (
        f"{words}. If that was for reasons that say nothing of their values, the probability "
        f"that any answer ever announced is wrong is at most {wrong}."
    )
