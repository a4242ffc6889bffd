"""The paths below /v1: each is a method of `Study` over HTTP."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import unquote

import anyio
from fastapi import APIRouter, Depends, Header, Query, Request
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response, StreamingResponse

from simplexplore import __version__
from simplexplore.bound.bound import lower_bound
from simplexplore.errors import MeansError, ProblemError, SettingError, StoreError
from simplexplore.exploration.stopping import THRESHOLDS
from simplexplore.problem import problem
from simplexplore.protocol import KEY_HEADER, MAX_BATCH, MAX_BODY
from simplexplore.report import bound_text
from simplexplore.report.json_text import to_json
from simplexplore.samplers import SAMPLERS, find_sampler
from simplexplore.study.pulls import Reward
from simplexplore.study.study import Study

from . import models
from .access import identify, needs
from .error_documents import FileError
from .metrics import Metrics
from .open_studies import GLANCE, Desk
from .tokens import Token

_ERRORS: dict[int | str, dict[str, Any]] = {
    code: {
        "description": text,
        "content": {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
        },
    }
    for code, text in (
        (400, "The body is not JSON."),
        (401, "No token, or one that is not known."),
        (403, "The token does not allow this."),
        (404, "There is no such study."),
        (408, "The body came too slowly."),
        (409, "The study has stopped, or something else is recorded already."),
        (413, "Too large."),
        (415, "The body is not sent as JSON."),
        (422, "Something in the request is wrong."),
        (503, "The store cannot be reached or is busy; try again."),
    )
}

api = APIRouter(prefix="/v1", responses=_ERRORS)

Reader = Annotated[Token, Depends(needs("read"))]
Runner = Annotated[Token, Depends(needs("run"))]
Admin = Annotated[Token, Depends(needs("admin"))]
After = Annotated[int, Query(ge=0, lt=2**62, description="Only what came after this event.")]

# A little shorter than keys in the journal, where the number of a reward may be added.
_LONGEST_KEY = 190

# Watchers of one process; each holds a connection open.
_MOST_WATCHERS = 500

# Seconds between signs of life on a quiet stream, so that nothing on the way closes it.
_SIGN_OF_LIFE = 15.0


class Json(Response):
    """JSON in which an infinite number is 1e999, as on the command line."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        try:
            return json.dumps(content, allow_nan=False).encode()
        except ValueError:
            return to_json(content).encode()


async def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


async def _name(name: str) -> str:
    """A study's name, out of a path that was left as it was sent."""
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError:
        raise HTTPException(404, "the study's name in the path is not UTF-8.") from None


async def _key(
    text: Annotated[
        str | None,
        Header(
            alias=KEY_HEADER,
            min_length=1,
            max_length=2000,
            pattern=r"^[\x21-\x7e]+$",
            description="Names the request: sent again under the same key, it happens once. "
            "Percent-encoded if it is not plain text.",
        ),
    ] = None,
) -> str | None:
    """The key of a request, decoded."""
    try:
        key = None if text is None else unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise SettingError(f"{KEY_HEADER}: the percent-encoded text is not UTF-8.") from None
    if key is not None and ("\0" in key or len(key) > _LONGEST_KEY):
        raise SettingError(f"{KEY_HEADER}: a key has at most {_LONGEST_KEY} characters, none NUL.")
    return key


AtDesk = Annotated[Desk, Depends(_desk)]
Name = Annotated[str, Depends(_name)]
Key = Annotated[str | None, Depends(_key)]


@api.get("/setup", response_model=models.Setup)
async def setup(request: Request, desk: AtDesk, token: Reader) -> Response:
    """Say what the caller may do, and what a study can be made of."""
    is_open = await desk.run(request.app.state.doorkeeper.is_open)
    return Json(
        {
            "version": __version__,
            "role": token.role,
            "tokens": not is_open,
            "samplers": [name for name in SAMPLERS if not find_sampler(name).needs_truth],
            "thresholds": list(THRESHOLDS),
            "max_batch": MAX_BATCH,
            "max_body": MAX_BODY,
        }
    )


@api.post("/bound", response_model=models.Planned)
async def bound(desk: AtDesk, body: models.Plan, _token: Runner) -> Response:
    """Read a problem file, and say how hard the problem is if the means are as given."""
    return Json(await desk.run(lambda: _planned(body), heavy=True))


def _planned(body: models.Plan) -> dict[str, Any]:
    found = _problem(body.problem)
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
    try:
        result = lower_bound(found, known)
    except (ProblemError, MeansError) as error:
        raise FileError(error, body.problem) from None
    return summary | {
        "title": bound_text.title(result),
        "headline": bound_text.headline(result),
        "notes": [note.text for note in bound_text.notes(result)],
        "bound": result.to_dict(),
    }


def _problem(text: str) -> problem.Problem:
    try:
        return problem.Problem.from_text(text, source="problem")
    except (ProblemError, MeansError) as error:
        raise FileError(error, text) from None


@api.get("/studies", response_model=models.Studies)
async def list_studies(
    desk: AtDesk,
    _token: Reader,
    limit: Annotated[int | None, Query(ge=1, le=MAX_BATCH, description="Default: all.")] = None,
    after: Annotated[
        str | None,
        Query(
            pattern=r"^\d+(\.\d+)?(e[+-]\d+)?:.",
            max_length=1000,
            description="'next' of the page before.",
        ),
    ] = None,
) -> Response:
    """List studies with their progress, the latest change first.

    One that changes moves to the front. So who reads all pages, and then the first ones again
    until one holds nothing new, has seen every study.
    """
    found = await desk.run(lambda: Study.list(desk.store))
    found.sort(key=_place, reverse=True)
    if after is not None:
        changed, _, name = after.partition(":")
        found = [one for one in found if _place(one) < (float(changed), name)]
    page: dict[str, Any] = {"studies": found[:limit]}
    if limit is not None and limit < len(found):
        page["next"] = "{!r}:{}".format(*_place(found[limit - 1]))
    return Json(page)


def _place(study: Mapping[str, Any]) -> tuple[float, str]:
    return study["changed"], study["name"]


@api.post("/studies", status_code=201)
async def create(desk: AtDesk, body: models.NewStudy, _token: Runner, key: Key) -> Response:
    """Start a study."""

    def work() -> dict[str, Any]:
        settings = body.model_dump(exclude={"name", "problem"})
        try:
            return Study.create(
                desk.store, body.name, _problem(body.problem), **settings, key=key
            ).about
        except (ProblemError, MeansError) as error:
            if isinstance(error, FileError):
                raise
            raise FileError(error, body.problem) from None

    return Json(await desk.run(work), 201)


@api.get("/studies/{name}")
async def about(desk: AtDesk, name: Name, _token: Reader) -> Response:
    """Say what a study is, and its answer if it has one."""

    def work() -> dict[str, Any]:
        study = desk.study(name, looking=True)
        return study.about | {
            "head": study.head,
            "answer": study.answer,
            "answer_in_words": study.answer_in_words,
        }

    return Json(await desk.run(work))


@api.post("/studies/{name}/pulls", response_model=models.Pulls)
async def ask(desk: AtDesk, name: Name, body: models.Ask, _token: Runner, key: Key) -> Response:
    """Ask which arms to play next."""
    pulls = await desk.run(lambda: desk.study(name).ask(body.n, key=key))
    return Json({"pulls": [vars(pull) for pull in pulls]})


@api.post("/studies/{name}/rewards", response_model=models.Told)
async def tell(desk: AtDesk, name: Name, body: models.Tell, _token: Runner, key: Key) -> Response:
    """Tell rewards, of pulls or of arms that were played elsewhere.

    A pull is its own key. Rewards of pulls made elsewhere are named after the request's key,
    unless they have keys of their own. What is known already comes back as repeated.
    """
    rewards = [
        Reward(one.reward, one.pull, one.arm, one.key or _key_of(one, key, i))
        for i, one in enumerate(body.rewards)
    ]
    told = await desk.run(lambda: desk.study(name).tell_many(rewards))
    return Json({"rewards": [vars(one) for one in told]})


def _key_of(reward: models.RewardToTell, key: str | None, number: int) -> str | None:
    return f"{key}#{number}" if key is not None and reward.arm is not None else None


@api.get("/studies/{name}/status")
async def status(desk: AtDesk, name: Name, _token: Reader) -> Response:
    """Say how far a study is: policy, evidence, samples to go, use of the constraints."""

    def work() -> dict[str, Any]:
        study = desk.study(name, looking=True)
        found = study.status() | {"answer_in_words": study.answer_in_words}
        del found["store"]  # where it is concerns only those who run the service
        return found

    return Json(await desk.run(work))


@api.get("/studies/{name}/history", response_model=models.History)
async def history(desk: AtDesk, name: Name, _token: Reader, after: After = 0) -> Response:
    """Statistic against threshold over time, for the comparison that is least settled."""
    points = await desk.run(lambda: desk.study(name, looking=True).history(after))
    return Json({"points": points})


@api.get("/studies/{name}/journal", response_model=models.Events)
async def journal(
    desk: AtDesk,
    name: Name,
    _token: Reader,
    after: After = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_BATCH)] = 1000,
) -> Response:
    """The journal, piece by piece."""
    events = await desk.run(lambda: desk.study(name, looking=True).events(after, limit))
    return Json({"events": events})


@api.post("/studies/{name}/notes", status_code=204, response_class=Response)
async def note(desk: AtDesk, name: Name, body: models.Note, _token: Runner, key: Key) -> Response:
    """Put a remark into the journal."""
    await desk.run(lambda: desk.study(name).note(body.text, key=key))
    return Response(status_code=204)


@api.post("/studies/{name}/extension", response_model=models.Extended)
async def extend(
    desk: AtDesk, name: Name, body: models.Extension, _token: Admin, key: Key
) -> Response:
    """Go on with a smaller delta: more confidence, more samples."""

    def work() -> dict[str, Any]:
        study = desk.study(name)
        study.extend(body.delta, key=key)
        return {"delta": body.delta, "answer": study.answer}

    return Json(await desk.run(work))


@api.post("/studies/{name}/verification", response_model=models.Verified)
async def verify(desk: AtDesk, name: Name, _token: Admin) -> Response:
    """Replay the whole journal and compare with the state in use, to the last bit."""
    sound = await desk.run(lambda: desk.study(name, looking=True).verify(), heavy=True)
    return Json({"sound": sound})


@api.get(
    "/studies/{name}/export",
    response_class=FileResponse,
    responses={
        200: {
            "description": "All pulls with their rewards.",
            "content": {
                "text/csv": {"schema": {"type": "string"}},
                "application/json": {"schema": {"type": "object"}},
                "application/vnd.apache.parquet": {
                    "schema": {"type": "string", "format": "binary"}
                },
            },
        }
    },
)
async def export(
    desk: AtDesk,
    name: Name,
    _token: Reader,
    form: Annotated[Literal["csv", "json", "parquet"], Query(alias="format")] = "csv",
) -> Response:
    """All pulls with their rewards, as a file."""
    folder = tempfile.TemporaryDirectory(prefix="simplexplore-")
    path = Path(folder.name, f"study.{form}")
    try:
        await desk.run(lambda: desk.study(name, looking=True).export(path), heavy=True)
    except BaseException:
        folder.cleanup()
        raise
    kinds = {"csv": "text/csv", "json": "application/json"}
    return FileResponse(
        path,
        filename=f"{name}.{form}",
        media_type=kinds.get(form, "application/vnd.apache.parquet"),
        background=BackgroundTask(folder.cleanup),
    )


@api.get(
    "/studies/{name}/events",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events: 'change', at most twice a second.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def events(
    request: Request,
    desk: AtDesk,
    name: Name,
    _token: Reader,
    last: Annotated[str | None, Header(alias="Last-Event-ID", max_length=20)] = None,
) -> Response:
    """A stream of changes: number of the last event, state, pulls and rewards so far."""
    metrics: Metrics = request.app.state.metrics
    if metrics.watchers >= _MOST_WATCHERS:
        raise HTTPException(503, "too many watch already; ask for the status now and then.")
    first = await desk.glance(name)

    async def stream() -> AsyncIterator[str]:
        metrics.watchers += 1
        try:
            seen = int(last) if last is not None and last.isdecimal() else -1
            quiet = 0.0
            yield "retry: 2000\n\n"
            now: Mapping[str, Any] = first
            while not desk.closing.is_set():
                if now["seq"] != seen:
                    seen, quiet = now["seq"], 0.0
                    yield f"id: {seen}\nevent: change\ndata: {json.dumps(now)}\n\n"
                elif quiet >= _SIGN_OF_LIFE:
                    quiet = 0.0
                    yield ": nothing new\n\n"
                with anyio.move_on_after(GLANCE):
                    await desk.closing.wait()
                quiet += GLANCE
                try:
                    now = await desk.glance(name)
                    await _still_allowed(request)
                except StoreError:
                    continue  # the store may come back
                except HTTPException:
                    break  # the token was revoked
        finally:
            metrics.watchers -= 1

    return StreamingResponse(stream(), media_type="text/event-stream")


async def _still_allowed(request: Request) -> None:
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    await identify(request, text.strip() if scheme.lower() == "bearer" else None)
