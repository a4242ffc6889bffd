"""Paths of studies: each is a method of `Study` over HTTP."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Query
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, PlainTextResponse, Response

from simplexplore.protocol import MAX_BATCH
from simplexplore.study.asking import asking, assigning, releasing
from simplexplore.study.pulls import Answers, Pulls, Reward, named
from simplexplore.study.records import About, Answer, CheckedFile, EventRecord
from simplexplore.study.registry import summaries
from simplexplore.study.steering import extending, noting, stopping, switching
from simplexplore.study.study import Study
from simplexplore.study.telling import telling
from simplexplore.study.voiding import confirming

from . import jobs, models
from .dependencies import (
    Admin,
    After,
    JsonResponse,
    Key,
    Name,
    QuickRoute,
    Reader,
    RunApart,
    Runner,
    Studies,
    new_router,
)

router = new_router()
quick_router = new_router(QuickRoute)

_MEDIA_TYPES = {"csv": "text/csv", "json": "application/json"}
_SCHEMAS = {"csv": {"type": "string"}, "json": {"type": "object"}}


@router.get("/v1/studies", response_model=models.Studies)
async def list_studies(
    studies: Studies,
    token: Reader,
    limit: Annotated[int | None, Query(ge=1, le=MAX_BATCH, description="Default: all.")] = None,
    after: Annotated[
        str | None,
        Query(
            pattern=r"^\d+(\.\d+)?(e[+-]\d+)?:.",
            max_length=1000,
            description="'next' of the page before.",
        ),
    ] = None,
    archived: Annotated[bool, Query(description="Whether archived ones are listed too.")] = False,
) -> Response:
    """List studies with their progress, the latest change first.

    One that changes moves to the front. So who reads all pages, and then the first ones again
    until one holds nothing new, has seen every study.
    """
    place = None
    if after is not None:
        changed, _, name = after.partition(":")
        place = (float(changed), name)
    # One more than wanted says whether there are more.
    more = None if limit is None else limit + 1
    found = await studies.threads.run(
        token.id, lambda: summaries(studies.store, more, place, archived=archived)
    )
    page: dict[str, Any] = {"studies": found[:limit]}
    if limit is not None and limit < len(found):
        page["next"] = "{changed!r}:{name}".format(**found[limit - 1])
    return JsonResponse(page)


@router.post("/v1/studies", response_model=About, status_code=201)
async def create(
    run_apart: RunApart, studies: Studies, body: models.NewStudy, token: Runner, key: Key = None
) -> Response:
    """Start a study."""
    settings = body.model_dump(exclude={"name", "problem"})
    work = partial(jobs.create, name=body.name, text=body.problem, settings=settings, key=key)
    return JsonResponse(await run_apart(token.id, work, studies.where), 201)


@router.get("/v1/studies/{name}")
async def about(studies: Studies, name: Name, token: Reader) -> Response:
    """Say what a study is, and its answer if it has one."""
    return JsonResponse(await studies.read(token.id, name, jobs.described))


@quick_router.post("/v1/studies/{name}/pulls", response_model=models.Pulls)
async def ask(
    studies: Studies, name: Name, body: models.Ask, token: Runner, key: Key = None
) -> Response:
    """Ask which arms to play next."""
    by = token.owner if body.by is None else body.by
    return JsonResponse(_pulls(await studies.commit(token.id, name, asking(body.n, key, by))))


def _pulls(pulls: Pulls) -> dict[str, Any]:
    return {"pulls": [vars(pull) for pull in pulls]}


@router.get("/v1/studies/{name}/pulls", response_model=models.Pulls)
async def pending(
    studies: Studies,
    name: Name,
    token: Reader,
    by: Annotated[str | None, Query(max_length=50, description="Only this one's.")] = None,
    arm: Annotated[str | None, Query(max_length=10_000, description="Only of this arm.")] = None,
    limit: Annotated[int | None, Query(ge=1, le=MAX_BATCH, description="Default: all.")] = None,
    after: Annotated[int, Query(ge=0, lt=2**62, description="Number of a pull.")] = 0,
) -> Response:
    """Pulls that were given out and have neither a reward nor expired, oldest first."""
    # One more than wanted says whether there are more.
    more = None if limit is None else limit + 1
    work = partial(Study.pending, by=by, arm=arm, limit=more, after=after)
    found = await studies.read(token.id, name, work)
    page = _pulls(found[:limit])
    if limit is not None and limit < len(found):
        page["next"] = int(found[limit - 1].id.split("-")[1])
    return JsonResponse(page)


@router.post("/v1/studies/{name}/pulls/assign", response_model=models.Pulls)
async def assign(studies: Studies, name: Name, body: models.Assignment, token: Runner) -> Response:
    """Let pending pulls be somebody's."""
    request = assigning(body.pulls, body.by)
    return JsonResponse(_pulls(await studies.commit(token.id, name, request)))


@router.post("/v1/studies/{name}/pulls/release", response_model=models.Pulls)
async def release(studies: Studies, name: Name, body: models.Release, token: Runner) -> Response:
    """Let pulls that were not made expire at once."""
    request = releasing(body.pulls, body.reason)
    return JsonResponse(_pulls(await studies.commit(token.id, name, request)))


@quick_router.post("/v1/studies/{name}/rewards", response_model=models.ToldRewards)
async def tell(
    studies: Studies, name: Name, body: models.Tell, token: Runner, key: Key = None
) -> Response:
    """Tell rewards, of pulls or of arms that were played elsewhere.

    A pull is its own key. Rewards of pulls made elsewhere are named after the request's key,
    unless they have keys of their own. What is known already comes back as repeated.
    """
    rewards = named([Reward(**vars(one)) for one in body.rewards], key)
    request = telling(rewards, unlikely=body.unlikely)
    return JsonResponse(_told(await studies.commit(token.id, name, request)))


def _told(rewards: Answers) -> dict[str, Any]:
    return {"rewards": [vars(one) for one in rewards]}


@router.get("/v1/studies/{name}/status")
async def status(run_apart: RunApart, studies: Studies, name: Name, token: Reader) -> Response:
    """Say how far a study is: policy, evidence, samples to go, use of the constraints."""
    found = await run_apart(token.id, jobs.on_study, studies.where, name, jobs.status)
    return JsonResponse(found)


@router.get("/v1/studies/{name}/history", response_model=models.History)
async def history(
    run_apart: RunApart, studies: Studies, name: Name, token: Reader, after: After = 0
) -> Response:
    """Statistic against threshold over time, for the comparison that is least settled."""
    work = partial(Study.history, after=after)
    points = await run_apart(token.id, jobs.on_study, studies.where, name, work)
    return JsonResponse({"points": points})


@router.get("/v1/studies/{name}/journal", response_model=models.Events)
async def journal(
    studies: Studies,
    name: Name,
    token: Reader,
    after: After = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_BATCH)] = 1000,
) -> Response:
    """The journal, piece by piece."""
    events = await studies.read(token.id, name, partial(Study.events, after=after, limit=limit))
    return JsonResponse({"events": events})


@router.post("/v1/studies/{name}/notes", status_code=204, response_class=Response)
async def note(
    studies: Studies, name: Name, body: models.Note, token: Runner, key: Key = None
) -> Response:
    """Put a remark into the journal."""
    await studies.commit(token.id, name, noting(body.text, key))
    return Response(status_code=204)


@router.post("/v1/studies/{name}/extension", response_model=models.Extended)
async def extend(
    studies: Studies, name: Name, body: models.Extension, token: Admin, key: Key = None
) -> Response:
    """Go on with a smaller delta: more confidence, more samples."""
    answer = await studies.commit(token.id, name, extending(body.delta, key))
    return JsonResponse({"delta": body.delta, "answer": answer})


@router.post("/v1/studies/{name}/stop", response_model=Answer)
async def stop(
    studies: Studies, name: Name, body: models.Stop, token: Admin, key: Key = None
) -> Response:
    """Say that what is known is good enough: the answer of this moment, without the promise."""
    return JsonResponse(await studies.commit(token.id, name, stopping(body.reason, key)))


@router.post("/v1/studies/{name}/voids", response_model=EventRecord)
async def void(
    studies: Studies, name: Name, body: models.Void, token: Runner, key: Key = None
) -> Response:
    """Void a reward: the study goes on as if it had never been told."""
    work = partial(Study.void, **body.model_dump(), key=key)
    # It adds the whole journal up anew.
    return JsonResponse(await studies.write(token.id, name, work))


@router.post("/v1/studies/{name}/confirm", response_model=EventRecord)
async def confirm(
    studies: Studies, name: Name, body: models.Confirmation, token: Runner, key: Key = None
) -> Response:
    """Say that a reward is meant although it looks impossible."""
    request = confirming(body.pull, body.event, key)
    return JsonResponse(await studies.commit(token.id, name, request))


@router.post("/v1/studies/{name}/imports", response_model=CheckedFile)
async def import_csv(
    studies: Studies, name: Name, body: models.Import, token: Runner, key: Key = None
) -> Response:
    """Tell all rewards of a CSV file, or none if a row is wrong."""
    work = partial(jobs.imported, text=body.csv, check=body.check, key=key, unlikely=body.unlikely)
    return JsonResponse(await studies.write(token.id, name, work))


@router.post("/v1/studies/{name}/pause", status_code=204, response_class=Response)
async def pause(studies: Studies, name: Name, _body: models.Nothing, token: Runner) -> Response:
    """Give out no more pulls until the study is resumed; rewards are still taken in."""
    await studies.commit(token.id, name, switching("paused"))
    return Response(status_code=204)


@router.post("/v1/studies/{name}/resume", status_code=204, response_class=Response)
async def resume(studies: Studies, name: Name, _body: models.Nothing, token: Runner) -> Response:
    """Let a study go on that was paused or archived."""
    await studies.commit(token.id, name, switching("resumed"))
    return Response(status_code=204)


@router.post("/v1/studies/{name}/archive", status_code=204, response_class=Response)
async def archive(studies: Studies, name: Name, _body: models.Nothing, token: Admin) -> Response:
    """Put a study aside: lists leave it out, and it takes nothing in until it is resumed."""
    await studies.commit(token.id, name, switching("archived"))
    return Response(status_code=204)


@router.get("/v1/studies/{name}/problem", response_class=PlainTextResponse)
async def problem(studies: Studies, name: Name, token: Reader) -> Response:
    """The problem file (TOML)."""
    return PlainTextResponse(await studies.read(token.id, name, jobs.problem))


@router.post("/v1/studies/{name}/verification", response_model=models.Verified)
async def verify(run_apart: RunApart, studies: Studies, name: Name, token: Admin) -> Response:
    """Replay the whole journal and compare with the state in use, to the last bit."""
    sound = await run_apart(token.id, jobs.on_study, studies.where, name, Study.verify)
    return JsonResponse({"sound": sound})


@router.get(
    "/v1/studies/{name}/export",
    response_class=FileResponse,
    responses={
        200: {
            "description": "All pulls with their rewards.",
            "content": {_MEDIA_TYPES[form]: {"schema": _SCHEMAS[form]} for form in _SCHEMAS},
        }
    },
)
async def export(
    run_apart: RunApart,
    studies: Studies,
    name: Name,
    token: Reader,
    form: Annotated[Literal["csv", "json"], Query(alias="format")] = "csv",
) -> Response:
    """All pulls with their rewards, as a file."""
    folder = tempfile.TemporaryDirectory(prefix="simplexplore-")
    path = Path(folder.name, f"study.{form}")
    try:
        work = partial(Study.export, path=path)
        await run_apart(token.id, jobs.on_study, studies.where, name, work)
    except BaseException:
        folder.cleanup()
        raise
    return FileResponse(
        path,
        filename=f"{name}.{form}",
        media_type=_MEDIA_TYPES[form],
        background=BackgroundTask(folder.cleanup),
    )
