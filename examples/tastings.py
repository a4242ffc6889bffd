"""A live study of meal.toml with a kitchen that is slow, works in batches, and fails at times.

    python examples/tastings.py [STORE]

Everything about the kitchen is simulated, its clock included, so that weeks pass in
seconds. Everything about the study is real: stop the script at any moment and start it again,
and it goes on where it was.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import simplexplore as sx
from simplexplore.study.store import Store

PROBLEM = Path(__file__).parent / "meal.toml"
HOUR, DAY = 3600.0, 86_400.0


class Kitchen:
    """Where dishes are cooked and tasted. Only here the true means are known."""

    def __init__(self, problem: sx.Problem, seed: int) -> None:
        self.now = 1_767_225_600.0 + seed * DAY  # a clock of its own
        self._taste = dict(zip(problem.arms, problem.means, strict=True))
        self._rng = np.random.default_rng(seed)

    def clock(self) -> float:
        return self.now

    def cook(self, pulls: list[sx.Pull]) -> list[tuple[str, float]]:
        """Cook a batch. It takes hours, and one dish in eight is burnt: no reward for it."""
        self.now += 5 * HOUR
        return [
            (pull.id, float(self._rng.normal(self._taste[pull.arm], 2.0)))
            for pull in pulls
            if self._rng.random() > 1 / 8
        ]

    def misplaces_a_note(self) -> bool:
        return bool(self._rng.random() < 0.5)

    def loses_the_connection(self) -> bool:
        return bool(self._rng.random() < 0.2)


def run(url: str, days: int = 200) -> sx.Study:
    """Cook one batch a day until the study has its answer."""
    problem = sx.Problem.from_file(PROBLEM)
    known = [row["name"] for row in sx.Study.list(Store(url))]
    first = sx.Study.open(url, "meal").head if "meal" in known else 0
    kitchen = Kitchen(problem, seed=first)
    store = Store(url, clock=kitchen.clock)
    if "meal" in known:
        study = sx.Study.open(store, "meal")
    else:
        # A dish that is not tasted within two days was burnt: it may be asked for again.
        study = sx.Study.create(
            store, "meal", problem.replace(means=None), "top-two", expire_after=2 * DAY
        )
    found_later: list[tuple[str, float]] = []
    for day in range(days):
        if study.stopped:
            break
        results = kitchen.cook(study.ask(24))
        if results and kitchen.misplaces_a_note():
            found_later.append(results.pop())  # turns up at the end of the week, and counts
        study.tell_many(results)
        if kitchen.loses_the_connection():
            study.tell_many(results)  # no answer came, so the worker tells again: harmless
        if day % 7 == 6:
            study.tell_many(found_later)
            found_later.clear()
            status = study.status()
            say(
                f"week {day // 7 + 1}: {status['rewards']} tasted, best so far "
                f"{status['policy_in_words']}; about {status['to_go']} to go"
            )
        kitchen.now += 19 * HOUR
    return study


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def main() -> None:
    """Run the study and say what came of it."""
    study = run(sys.argv[1] if len(sys.argv) > 1 else "tastings.db")
    say(study.answer_in_words)
    status = study.status()
    say(
        f"{status['rewards']} dishes tasted, {status['expired']} expired, {status['late']} of "
        "which were found later."
    )


if __name__ == "__main__":
    main()
