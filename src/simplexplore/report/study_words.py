"""What is known of a live study, a sentence about each thing: for terminals and browsers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from simplexplore.problem.measured import Measured
from simplexplore.problem.messages import at_least, at_most, count
from simplexplore.study.records import Answer
from simplexplore.study.status_records import Status

from .numbers import number, percent

# Arms of a mix that are named.
_NAMED = 6

# Seconds that a study is old before its pace is said.
_FIRST_PACE = 600.0

# Units of time in days, the longest first.
_UNITS = {"week": 7.0, "day": 1.0, "hour": 1 / 24, "minute": 1 / 1440, "second": 1 / 86_400}


def study_words(status: Status) -> dict[str, str]:
    """What a person wants to know of a study, by what it is about, in the order of interest."""
    words: dict[str, str] = {}
    if (answer := status["answer"]) is not None:
        words["answer"] = _answer(status, answer)
        words["decided"] = _decided(status)
    elif status.get("infeasible"):
        words["best mix so far"] = f"none. It seems that no mix keeps {limits_in_words(status)}."
    elif "question" in status:
        words["answer so far"] = f"{status['policy_in_words'] or 'not known yet'}."
    elif status["policy"] is None:
        few = "too few rewards" if "measured" in status else "no reward"
        words["best mix so far"] = f"not known yet: some arms have {few}."
    else:
        words["best mix so far"] = f"{mix_in_percent(_shares(status))}."
        words["it earns"] = _earns(status)
    if status["held"]:
        words["held"] = _held(status)
    words["confidence"] = _confidence(status)
    if "measured" not in status and "question" not in status:
        words["a wrong choice"] = _wrong_choice(status)
    if answer is None:
        words["still to go"] = _still_to_go(status)
        if status["edges"]:
            words["evidence"] = _evidence(status)
    if status["withdrawn_in_words"] is not None:
        words["taken back"] = status["withdrawn_in_words"]
    alarms = [check["words"] for check in status["health"] if check["state"] == "alarm"]
    words["health"] = " ".join(alarms) or "nothing unusual."
    if "cost" in status:
        words["cost"] = _cost(status)
    if status["overdue"]:
        words["overdue"] = f"{count(status['overdue'], 'pull')}; they expire with the next ask."
    return words


def mix_in_percent(mix: Mapping[str, float]) -> str:
    """Write a mix as shares in percent, the largest first, and those alone if they are too many.

    Examples
    --------
    >>> mix_in_percent({"lentils": 0.4, "salmon": 0.6, "pizza": 0.0})
    '60% salmon, 40% lentils'
    >>> mix_in_percent({"salmon": 1.0})
    '100% salmon'
    """
    used = sorted(
        ((arm, share) for arm, share in mix.items() if share > 0), key=lambda one: -one[1]
    )
    parts = [f"{percent(share)} {arm}" for arm, share in used[:_NAMED]]
    if len(used) > _NAMED:
        parts.append(f"{len(used) - _NAMED} more")
    return ", ".join(parts)


def limits_in_words(status: Status) -> str:
    """The measured limits as a sentence has them."""
    rows = [Measured(row["name"], row["limit"]) for row in status.get("measured", [])]
    return " and ".join(row.in_words for row in rows)


def moment_in_words(seconds: float) -> str:
    """Write a moment, in seconds since 1970, in UTC.

    Examples
    --------
    >>> moment_in_words(1.8e9)
    '2027-01-15 08:00:00'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


def pace_in_words(per_day: float) -> str:
    """Write how often something happens, in the shortest unit in which that is twice or more.

    Examples
    --------
    >>> pace_in_words(9.2), pace_in_words(0.5), pace_in_words(4000.0)
    ('9.2 a day', '3.5 a week', '2.8 a minute')
    """
    units = [unit for unit, days in _UNITS.items() if per_day * days >= 2]
    unit = units[-1] if units else "week"
    each = per_day * _UNITS[unit]
    rate = f"{each:.2g}" if each < 100 else number(each)
    return f"{rate} {'an' if unit == 'hour' else 'a'} {unit}"


def span_in_words(low: float, high: float | None) -> str:
    """Write a range of days in a unit of which there are two or more, rounded outwards.

    Examples
    --------
    >>> span_in_words(15.0, 40.0), span_in_words(0.5, 3.2), span_in_words(20.5, None)
    ('2 to 6 weeks', 'up to 4 days', '2 weeks or more')
    """
    longest = high or low
    unit = next((unit for unit, days in _UNITS.items() if longest >= 2 * days), "second")
    first = math.floor(low / _UNITS[unit])
    if high is None:
        return f"{count(first, unit)} or more"
    last = max(math.ceil(high / _UNITS[unit]), 1)
    return f"{first} to {count(last, unit)}" if first else f"up to {count(last, unit)}"


def _shares(status: Status) -> dict[str, float]:
    return {arm["arm"]: arm["policy"] or 0.0 for arm in status["arms"]}


def _earns(status: Status) -> str:
    low, high = status["value_interval"] or (None, None)
    value = number(status["value"] or 0.0)
    if low is None or high is None:
        return f"{value}, with no interval yet."
    return f"{value}, between {number(low)} and {number(high)} at every moment."


def _answer(status: Status, answer: Answer) -> str:
    goal = status["stop_when"] or {}
    mix = answer.get("words") or mix_in_percent(answer["mix"])
    found = count(answer["rewards"], "reward")
    if answer.get("by_hand"):
        if answer["policy"] is None:
            mix = f"no mix keeps {limits_in_words(status)}"
        return f"{mix}. Stopped by hand after {found}; delta is not guaranteed: {answer['reason']}"
    if goal.get("budget"):
        return f"{mix}. The budget of {found} is spent; delta is not guaranteed."
    within = status["epsilon"] or goal.get("regret", 0.0)
    if answer["policy"] is None:
        mix, within = f"no mix keeps {limits_in_words(status)}", 0.0
    return (
        f"{mix}. It is {f'within {within:g} of the best, ' if within else ''}"
        f"wrong with probability at most {answer['delta']:g}"
        f"{'' if status['proven'] else ' by a heuristic'}; found with {found}."
    )


def _decided(status: Status) -> str:
    """When it was decided, and on which evidence; what came later stands apart."""
    decision = status["decision"]
    assert decision is not None
    goal = status["stop_when"] or {}
    answer = status["answer"]
    if answer is not None and answer.get("by_hand"):
        why = "by hand"
    elif goal.get("budget"):
        why = "when the samples were spent"
    elif "regret" in goal:
        why = f"when no mix could be better by more than {number(goal['regret'])}"
    else:
        why = (
            f"with evidence {number(decision['statistic'])}, where "
            f"{number(decision['threshold'])} was needed"
        )
    later = count(decision["later"], "reward")
    return (
        f"{moment_in_words(decision['at'])} (UTC), {why}."
        f"{f' {later} came later and changed nothing.' if decision['later'] else ''}"
    )


def _held(status: Status) -> str:
    """Which rewards look impossible, and what to do about them."""
    named = "; ".join(
        f"{number(one['reward'])} of {one['arm']}, where {number(one['usual'][0])} to "
        f"{number(one['usual'][1])} is usual ({one.get('pull') or 'event ' + str(one['event'])})"
        for one in status["held"]
    )
    return f"{named}. Nothing is decided before that is confirmed or voided."


def _confidence(status: Status) -> str:
    share = status["confidence"]
    if share is None:
        return (
            "not known before every arm has a reward."
            if status["policy"] is None
            else f"not known with the threshold {status['threshold']}."
        )
    within = f" by more than {status['epsilon']:g}" if status["epsilon"] else ""
    kept = " that keeps the measured limits" if "measured" in status else ""
    if status.get("infeasible"):
        return f"{at_least(share)} that no mix keeps them."
    if "question" in status:
        return f"{at_least(share)} that this answer is right."
    return f"{at_least(share)} that no mix{kept} is better{within}."


def _wrong_choice(status: Status) -> str:
    lost = status["regret_bound"]
    if lost is None:
        return "how much it would cost is not known yet."
    return (
        f"costs at most {at_most(lost)} a sample, with confidence {percent(1 - status['delta'])}."
    )


def _still_to_go(status: Status) -> str:
    goal, more, ends = status["stop_when"] or {}, status["to_go"], status["to_go_range"]
    if (budget := goal.get("budget")) is not None:
        left = number(budget if more is None else more)
        return f"{left} of {number(budget)} samples{_time(status, ends)}."
    if more is None and (status["policy"] is None or "measured" in status):
        return "too early to say."
    if more is None:
        what = "answers" if "question" in status else "mixes"
        return f"cannot be estimated, as the best {what} tie at the means seen so far."
    if (regret := goal.get("regret")) is not None:
        so_far = f"about {number(more)} samples, until no mix can be better by more than "
        return f"{so_far}{number(regret)}{_time(status, (more, more))}."
    return f"about {number(more)} samples{_range(ends)}{_time(status, ends)}."


def _time(status: Status, ends: Sequence[float | None] | None) -> str:
    """How long that takes at the pace so far."""
    age = status["now"] - status["created"]
    if ends is None or not status["rewards"] or age < _FIRST_PACE:
        return ""
    pace = status["rewards"] / age * 86_400
    low, high = (None if end is None else end / pace for end in ends)
    if not low and high is None:
        return ""
    return f"; {span_in_words(low or 0.0, high)} at {pace_in_words(pace)}"


def _evidence(status: Status) -> str:
    """How much there is, and which mix is the hardest to rule out."""
    edges = status["edges"]
    assert edges
    nearest = min(edges, key=lambda edge: edge["statistic"] - edge["threshold"])
    if nearest["neighbour"] is not None:
        rival = mix_in_percent(nearest["neighbour"])
    else:
        rates = nearest["direction"].items()
        more, less = (", ".join(arm for arm, rate in rates if rate * sign > 0) for sign in (1, -1))
        rival = f"more of {more}, less of {less}"
        if "question" in status:
            ends = (("a higher mean of", more), ("a lower mean of", less))
            rival = " and ".join(f"{end} {arms}" for end, arms in ends if arms)
    hardest = f"hardest to rule out: {rival}."
    if status["stop_when"] or status["progress"] is None:
        return hardest
    return f"{percent(status['progress'])} of what is needed; {hardest}"


def _cost(status: Status) -> str:
    """What was spent, and about how much more will be."""
    spent = f"{number(status['cost'])} so far"
    left = status["cost_to_go"]
    if left is None or status["answer"] is not None:
        return f"{spent}."
    return f"{spent}, about {number(left)} to go{_range(status['cost_to_go_range'])}."


def _range(ends: Sequence[float | None] | None) -> str:
    if ends is None:
        return ""
    low, high = ends[0] or 0, ends[1]
    if not low and high is None:
        return "; it is too early for a range"
    upper = "or more" if high is None else f"to {number(high)}"
    return f" ({number(low)} {upper} in four runs of five)"
