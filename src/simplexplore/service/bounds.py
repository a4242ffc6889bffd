"""How hard a problem is, before a study is made of it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from simplexplore.bound.bound import lower_bound
from simplexplore.problem.problem import Problem
from simplexplore.report.bound_text import headline, notes, title

from . import models
from .dependencies import Runner, Threads
from .error_documents import naming_lines
from .responses import JsonResponse

router = APIRouter()


@router.post("/v1/bound", response_model=models.Planned)
async def bound(threads: Threads, body: models.Plan, _token: Runner) -> Response:
    """Read a problem file, and say how hard the problem is if the means are as given."""
    return JsonResponse(await threads.run(lambda: _planned(body), heavy=True))


def _planned(body: models.Plan) -> dict[str, Any]:
    with naming_lines(body.problem):
        found = Problem.from_text(body.problem, source="problem")
    if body.delta is not None:
        found = found.replace(delta=body.delta)
    known = body.means if body.means is not None else found.means
    summary: dict[str, Any] = {
        "arms": list(found.arms),
        "constraints": list(found.names),
        "family": found.rewards.name,
        "delta": found.delta,
        "scenario": found.scenario,
        "title": None,
        "headline": "The file gives no means: add a guess (means = [...]) to see how hard the "
        "problem would be. A study does without.",
        "notes": [],
        "bound": None,
    }
    if known is None:
        return summary
    with naming_lines(body.problem):
        result = lower_bound(found, known)
    return summary | {
        "title": title(result),
        "headline": headline(result),
        "notes": [note.text for note in notes(result)],
        "bound": result.to_dict(),
    }
