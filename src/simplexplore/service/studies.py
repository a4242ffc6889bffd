"""Paths of studies: each is a method of `Study` over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import PlainTextResponse, Response

from simplexplore.errors import TooLargeError
from simplexplore.protocol import MAX_BATCH
from simplexplore.study.group import Request
from simplexplore.study.pulls import Pull, Reward, Told, named
from simplexplore.study.registry import is_taken, summaries
from simplexplore.study.study import Study

from . import heavy_work, models
from .access import CheckedRoute
from .dependencies import Admin, After, Key, Name, Processes, Reader, Runner, Studies, Threads
from .direct_routes import DirectRoute
from .responses import JsonResponse
from .worker_processes import outcome_unknown

router = APIRouter(prefix="/v1/studies", route_class=CheckedRoute)


@router.get("", response_model=models.Studies)
async def list_studies(
    threads: Threads,
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
    found = await threads.run(
        token.id, lambda: summaries(studies.store, more, place, archived=archived)
    )
    page: dict[str, Any] = {"studies": found[:limit]}
    if limit is not None and limit < len(found):
        page["next"] = "{changed!r}:{name}".format(**found[limit - 1])
    return JsonResponse(page)


@router.post("", status_code=201)
async def create(
    processes: Processes,
    threads: Threads,
    studies: Studies,
    body: models.NewStudy,
    token: Runner,
    key: Key,
) -> Response:
    """Start a study."""
    settings = body.model_dump(exclude={"name", "problem"})
    try:
        about = await processes.run(
            token.id, heavy_work.create, studies.where, body.name, body.problem, settings, key
        )
    except TooLargeError as error:  # perhaps it was ended a moment too late
        if await threads.run(token.id, lambda: is_taken(studies.store, body.name)):
            raise outcome_unknown(f"{error} But there is a study {body.name!r} now.") from None
        raise
    return JsonResponse(about, 201)


@router.get("/{name}")
async def about(studies: Studies, name: Name, token: Reader) -> Response:
    """Say what a study is, and its answer if it has one."""
    return JsonResponse(await studies.read(token.id, name, heavy_work.described))


@router.post("/{name}/pulls", response_model=models.Pulls)
async def ask(studies: Studies, name: Name, body: models.Ask, token: Runner, key: Key) -> Response:
    """Ask which arms to play next."""
    return JsonResponse(_pulls(await studies.commit(token.id, name, _asking(body, key))))


def _asking(body: models.Ask, key: str | None) -> Request:
    work = partial(Study.ask, n=body.n, key=key)
    return Request(work, body.n, [] if key is None else [key])


def _pulls(pulls: Sequence[Pull]) -> dict[str, Any]:
    return {"pulls": [vars(pull) for pull in pulls]}


@router.get("/{name}/pulls", response_model=models.Pulls)
async def pending(studies: Studies, name: Name, token: Reader) -> Response:
    """Pulls that were given out and have neither a reward nor expired, oldest first."""
    return JsonResponse(_pulls(await studies.read(token.id, name, Study.pending)))


@router.post("/{name}/rewards", response_model=models.Told)
async def tell(
    studies: Studies, name: Name, body: models.Tell, token: Runner, key: Key
) -> Response:
    """Tell rewards, of pulls or of arms that were played elsewhere.

    A pull is its own key. Rewards of pulls made elsewhere are named after the request's key,
    unless they have keys of their own. What is known already comes back as repeated.
    """
    request = _telling(body, key)
    if request.keys is None:
        return JsonResponse(_told(await studies.write(token.id, name, request.work)))
    return JsonResponse(_told(await studies.commit(token.id, name, request)))


def _telling(body: models.Tell, key: str | None) -> Request:
    rewards = named(
        [Reward(one.reward, one.pull, one.arm, one.key, one.measured) for one in body.rewards], key
    )
    keys = [one.key for one in rewards if one.key is not None]
    # Told twice, some rewards would count twice; so they go alone.
    is_safe = all(one.pull or one.key for one in rewards)
    return Request(
        partial(Study.tell_many, rewards=rewards), len(rewards), keys if is_safe else None
    )


def _told(rewards: Sequence[Told]) -> dict[str, Any]:
    return {"rewards": [vars(one) for one in rewards]}


@router.get("/{name}/status")
async def status(processes: Processes, studies: Studies, name: Name, token: Reader) -> Response:
    """Say how far a study is: policy, evidence, samples to go, use of the constraints."""
    found = await processes.run(token.id, heavy_work.status, studies.where, name, quick=True)
    return JsonResponse(found)


@router.get("/{name}/history", response_model=models.History)
async def history(studies: Studies, name: Name, token: Reader, after: After = 0) -> Response:
    """Statistic against threshold over time, for the comparison that is least settled."""
    points = await studies.read(token.id, name, partial(Study.history, after=after))
    return JsonResponse({"points": points})


@router.get("/{name}/journal", response_model=models.Events)
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


@router.post("/{name}/notes", status_code=204, response_class=Response)
async def note(
    studies: Studies, name: Name, body: models.Note, token: Runner, key: Key
) -> Response:
    """Put a remark into the journal."""
    await studies.write(token.id, name, partial(Study.note, text=body.text, key=key))
    return Response(status_code=204)


@router.post("/{name}/extension", response_model=models.Extended)
async def extend(
    studies: Studies, name: Name, body: models.Extension, token: Admin, key: Key
) -> Response:
    """Go on with a smaller delta: more confidence, more samples."""
    work = partial(heavy_work.extended, delta=body.delta, key=key)
    return JsonResponse(await studies.write(token.id, name, work))


@router.post("/{name}/voids")
async def void(
    studies: Studies, name: Name, body: models.Void, token: Runner, key: Key
) -> Response:
    """Strike a reward out: the study goes on as if it had never been told."""
    work = partial(Study.void, **body.model_dump(), key=key)
    # It adds the whole journal up anew.
    return JsonResponse(await studies.write(token.id, name, work, heavy=True))


@router.post("/{name}/imports", response_model=models.Imported)
async def import_csv(
    studies: Studies, name: Name, body: models.Import, token: Runner, key: Key
) -> Response:
    """Tell all rewards of a CSV file, or none if a row is wrong."""
    work = partial(heavy_work.imported, text=body.csv, check=body.check, key=key)
    return JsonResponse(await studies.write(token.id, name, work, heavy=True))


@router.post("/{name}/pause", status_code=204, response_class=Response)
async def pause(studies: Studies, name: Name, _body: models.Nothing, token: Runner) -> Response:
    """Give out no more pulls until the study is resumed; rewards are still taken in."""
    await studies.write(token.id, name, Study.pause)
    return Response(status_code=204)


@router.post("/{name}/resume", status_code=204, response_class=Response)
async def resume(studies: Studies, name: Name, _body: models.Nothing, token: Runner) -> Response:
    """Let a study go on that was paused or archived."""
    await studies.write(token.id, name, Study.resume)
    return Response(status_code=204)


@router.post("/{name}/archive", status_code=204, response_class=Response)
async def archive(studies: Studies, name: Name, _body: models.Nothing, token: Admin) -> Response:
    """Put a study aside: lists leave it out, and it takes nothing in until it is resumed."""
    await studies.write(token.id, name, Study.archive)
    return Response(status_code=204)


@router.post("/{name}/tags", status_code=204, response_class=Response)
async def tag(studies: Studies, name: Name, body: models.Tags, token: Runner) -> Response:
    """Give a study these tags and no others."""
    await studies.write(token.id, name, partial(_tagged, tags=body.tags))
    return Response(status_code=204)


def _tagged(study: Study, tags: list[str]) -> None:
    study.tag(*tags)


@router.get("/{name}/problem", response_class=PlainTextResponse)
async def problem(studies: Studies, name: Name, token: Reader) -> Response:
    """The problem file (TOML)."""
    return PlainTextResponse(await studies.read(token.id, name, heavy_work.problem))


@router.post("/{name}/verification", response_model=models.Verified)
async def verify(processes: Processes, studies: Studies, name: Name, token: Admin) -> Response:
    """Replay the whole journal and compare with the state in use, to the last bit."""
    sound = await processes.run(token.id, heavy_work.verify, studies.where, name)
    return JsonResponse({"sound": sound})


def _route_of(endpoint: Callable[..., Any]) -> CheckedRoute:
    routes = (route for route in router.routes if isinstance(route, CheckedRoute))
    return next(route for route in routes if route.endpoint is endpoint)


# Paths of many small requests.
DIRECT = [
    DirectRoute(_route_of(ask), models.Ask, _asking, _pulls),
    DirectRoute(_route_of(tell), models.Tell, _telling, _told),
]
