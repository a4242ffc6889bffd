"""Studies of a service, used like studies of a store.

Only the standard library is needed here, so that a worker starts at once and installs nothing
more. Everything that changes a study carries a key made before the first attempt: sent again
after a lost answer, it happens once.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import secrets
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote, urlencode, urlsplit

from simplexplore.errors import (
    AccessError,
    ServiceError,
    SettingError,
    SimplexploreError,
    TooLargeError,
)
from simplexplore.files import written_aside
from simplexplore.protocol import KEY_HEADER, MAX_BATCH, from_problem
from simplexplore.study.import_export import read_rewards
from simplexplore.study.pulls import Pull, Reward, Told, as_reward

if TYPE_CHECKING:
    from simplexplore.problem.problem import Problem

# Seconds for which an unreachable service is tried again: a restart takes a few.
RETRY_FOR = 60.0

# Seconds to wait for one answer: longer than the service takes to give up.
_PATIENCE = 90.0

# Seconds after which a quiet connection is not trusted: the service, or something on the way,
# may have forgotten it.
_IDLE = 30.0

# Studies in one answer.
_PAGE = 1000

# Statuses that say "not now".
_BUSY = (429, 502, 503, 504)

# Inside the classes, `list` is a method.
Pulls = list[Pull]
Answers = list[Told]
Plain = list[dict[str, Any]]


def connect(url: str, token: str | None = None, *, retry_for: float = RETRY_FOR) -> Service:
    """Use the studies of a service.

    Parameters
    ----------
    url : str
        Such as ``http://127.0.0.1:8080``.
    token : str, optional
        Default: the environment variable ``SIMPLEXPLORE_TOKEN``, if set.
    retry_for : float
        Seconds for which a service that cannot be reached is tried again.
    """
    return Service(url, token or os.environ.get("SIMPLEXPLORE_TOKEN") or None, retry_for)


class Service:
    """A service and its studies. Threads may share it; each has its own connection."""

    def __init__(self, url: str, token: str | None, retry_for: float) -> None:
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # the port, or brackets
            usable = False
        if not usable:
            raise SettingError(
                f"{url!r} is not the address of a service; it looks like http://127.0.0.1:8080."
            )
        if token is not None and not re.fullmatch(r"[\x21-\x7e]+", token):
            raise SettingError("a token is one word, as 'simplexplore token create' printed it.")
        self.url = url.rstrip("/")
        self._parts = parts
        self._base = parts.path.rstrip("/") + "/v1"
        self._token = token
        self._retry_for = retry_for
        self._local = threading.local()

    def __repr__(self) -> str:
        return f"Service({self.url!r})"

    def list(self) -> Plain:
        """Say of every study how far it is, the latest change first."""
        found: dict[str, dict[str, Any]] = {}
        if self._read_pages(found) > 1:
            # One that changed meanwhile has moved to the front, perhaps past us.
            self._read_pages(found)
        return sorted(found.values(), key=lambda one: (one["changed"], one["name"]), reverse=True)

    def _read_pages(self, found: dict[str, dict[str, Any]]) -> int:
        """Read the list of studies until a page holds nothing new; returns how many it took."""
        query: dict[str, Any] = {"limit": _PAGE}
        pages = 0
        while True:
            page = self.call("GET", f"/studies{_query(query)}")
            pages += 1
            new = {one["name"]: one for one in page["studies"] if found.get(one["name"]) != one}
            found |= new
            if "next" not in page or not new:
                return pages
            query["after"] = page["next"]

    def create(
        self, name: str, problem: Problem, sampler: str = "ctns", **settings: Any
    ) -> RemoteStudy:
        """Start a study; the settings are those of `Study.create`."""
        key = settings.pop("key", None)
        body = {"name": name, "problem": problem.to_text(), "sampler": sampler, **settings}
        self.call("POST", "/studies", body, key=key)
        return RemoteStudy(self, name)

    def open(self, name: str) -> RemoteStudy:
        """Find a study by its name."""
        study = RemoteStudy(self, name)
        _ = study.about  # complains if there is none
        return study

    def close(self) -> None:
        """Close this thread's connection; a later call opens a new one."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ requests

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        into: BinaryIO | None = None,
    ) -> Any:
        """Send a request, again if need be, and return the answer or raise its error."""
        headers = {"Accept": "application/json"}
        content = None
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        if method == "POST":
            headers["Content-Type"] = "application/json"
            headers[KEY_HEADER] = quote(key or secrets.token_hex(16))
            content = json.dumps(body, default=_plain).encode()
        failed: float | None = None  # since when
        pause = 0.05
        while True:
            try:
                status, waiting, answer = self._send(method, path, content, headers, into)
                if status not in _BUSY:
                    return _understood(status, answer)
                error = _error(status, answer)
            except (OSError, http.client.HTTPException) as reason:
                self.close()
                waiting = 0.0
                error = ServiceError(f"{self.url} cannot be reached ({_words(reason)}).")
                if isinstance(reason, ssl.SSLCertVerificationError):  # no time heals this
                    raise error from None
            now = time.monotonic()
            failed = now if failed is None else failed
            # Spread out, so that many workers do not come back at the same moment.
            nap = max(waiting, pause * random.uniform(0.5, 1.0))
            if now - failed + nap > self._retry_for:
                raise error
            time.sleep(nap)
            pause = min(2 * pause, 2.0)

    def _send(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        into: BinaryIO | None,
    ) -> tuple[int, float, bytes]:
        connection = self._connection()
        connection.request(method, self._base + path, content, dict(headers))
        response = connection.getresponse()
        waiting = response.headers.get("Retry-After", "0")
        answer = b""
        if into is not None and response.status == 200:
            _write(response, into)
        else:
            answer = response.read()
        self._local.used = time.monotonic()
        if response.will_close:
            self.close()
        return response.status, float(waiting) if waiting.isdecimal() else 0.0, answer

    def _connection(self) -> http.client.HTTPConnection:
        if time.monotonic() - getattr(self._local, "used", 0.0) > _IDLE:
            self.close()
        connection = getattr(self._local, "connection", None)
        if connection is None or getattr(self._local, "pid", None) != os.getpid():
            host, port = self._parts.hostname, self._parts.port
            assert host is not None
            if self._parts.scheme == "https":
                connection = http.client.HTTPSConnection(
                    host, port, timeout=_PATIENCE, context=ssl.create_default_context()
                )
            else:
                connection = http.client.HTTPConnection(host, port, timeout=_PATIENCE)
            self._local.connection, self._local.pid = connection, os.getpid()
        found: http.client.HTTPConnection = connection
        return found


class RemoteStudy:
    """A study of a service, with the methods of `Study`."""

    def __init__(self, service: Service, name: str) -> None:
        self.service = service
        self.name = name
        self._path = f"/studies/{quote(name, safe='')}"
        self._fixed: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"RemoteStudy({self.name!r} at {self.service.url})"

    def __enter__(self) -> RemoteStudy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.service.close()

    def _get(self, what: str = "", **query: Any) -> Any:
        return self.service.call("GET", f"{self._path}{what}{_query(query)}")

    def _post(self, what: str, body: Mapping[str, Any] | None, key: str | None = None) -> Any:
        return self.service.call("POST", self._path + what, body, key=key)

    # ------------------------------------------------------------------ asking and telling

    def ask(self, n: int = 1, *, key: str | None = None) -> Pulls:
        """Say which arms to play next."""
        return [Pull(**pull) for pull in self._post("/pulls", {"n": n}, key)["pulls"]]

    def tell(
        self,
        pull: str | Pull | None = None,
        reward: float | None = None,
        *,
        arm: str | None = None,
        key: str | None = None,
    ) -> Told:
        """Report the reward of a pull, or of an arm that was played elsewhere."""
        identity = pull.id if isinstance(pull, Pull) else pull
        return self.tell_many([Reward(reward, identity, arm, key)])[0]  # type: ignore[arg-type]

    def tell_many(self, rewards: Iterable[Reward | tuple[str | Pull, float]]) -> Answers:
        """Report many rewards at once: all are taken in, or none."""
        wanted = [as_reward(item) for item in rewards]
        if len(wanted) > MAX_BATCH:
            raise TooLargeError(
                f"a service takes at most {MAX_BATCH:,} rewards at a time; got {len(wanted):,}."
            )
        if not wanted:
            return []
        body = {
            "rewards": [
                {name: value for name, value in vars(one).items() if value is not None}
                for one in wanted
            ]
        }
        return [Told(**one) for one in self._post("/rewards", body)["rewards"]]

    def import_csv(self, path: str | os.PathLike[str]) -> Answers:
        """Tell all rewards of a CSV file, or none if a row is wrong; see `Study.import_csv`."""
        rewards, places = read_rewards(path)
        try:
            return self.tell_many(rewards)
        except SimplexploreError as error:
            found = re.match(r"reward (\d+): ", str(error))
            place = places[int(found[1]) - 1] if found else places[0]
            text = str(error)[found.end() :] if found else str(error)
            if isinstance(error, ServiceError | AccessError | TooLargeError):
                raise
            raise type(error)(f"{place}: {text}") from None

    def extend(self, delta: float, *, key: str | None = None) -> None:
        """Go on with a smaller delta: more confidence, more samples."""
        self._post("/extension", {"delta": delta}, key)

    def note(self, text: str, *, key: str | None = None) -> None:
        """Put a remark into the journal."""
        self._post("/notes", {"text": text}, key)

    # ------------------------------------------------------------------ looking

    @property
    def about(self) -> dict[str, Any]:
        """What the study is: everything that was fixed when it was made."""
        if self._fixed is None:
            found = self._get()
            for name in ("head", "answer", "answer_in_words"):
                del found[name]
            self._fixed = found
        return dict(self._fixed)

    @property
    def created(self) -> float:
        """When the study was made."""
        return float(self.about["created"])

    @property
    def seed(self) -> int:
        """Of the sampler's own choices."""
        return int(self.about["seed"])

    @property
    def expire_after(self) -> float:
        """Seconds after which a pull is given up."""
        seconds = self.about["expire_after"]
        return float("inf") if seconds is None else float(seconds)

    @property
    def problem(self) -> Problem:
        """What is explored."""
        from simplexplore.problem.problem import Problem

        return Problem.from_text(self.about["problem"], source=f"study {self.name!r}")

    @property
    def stopped(self) -> bool:
        """Whether the study has its answer."""
        return self.answer is not None

    @property
    def answer(self) -> dict[str, Any] | None:
        """What the study found; None while it runs."""
        found: dict[str, Any] | None = self._get()["answer"]
        return found

    @property
    def answer_in_words(self) -> str:
        """The answer as a sentence."""
        return str(self._get()["answer_in_words"])

    @property
    def head(self) -> int:
        """The number of the last event."""
        return int(self._get()["head"])

    def status(self) -> dict[str, Any]:
        """Everything there is to know now, as plain data."""
        found: dict[str, Any] = self._get("/status")
        return found

    def history(self, after: int = 0) -> Plain:
        """Statistic against threshold over time, for the comparison that is least settled."""
        points: Plain = self._get("/history", after=after)["points"]
        return points

    def events(self, after: int = 0, limit: int | None = None) -> Plain:
        """The journal after a given event, as plain dicts."""
        return [event for event, _ in zip(self._events(after), _up_to(limit), strict=False)]

    def each_event(self) -> Iterator[dict[str, Any]]:
        """The whole journal up to now, read in pieces."""
        head = self.head
        for event in self._events(0):
            if event["seq"] > head:
                return
            yield event

    def _events(self, after: int) -> Iterator[dict[str, Any]]:
        while True:
            some = self._get("/journal", after=after, limit=MAX_BATCH)["events"]
            yield from some
            if len(some) < MAX_BATCH:
                return
            after = some[-1]["seq"]

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write all pulls with their rewards to a .csv, .json or .parquet file."""
        path = Path(path)
        form = path.suffix.lower().removeprefix(".")
        if form not in ("csv", "json", "parquet"):
            raise SettingError(
                f"{path}: the ending says in which format to write: .csv, .json or .parquet."
            )
        try:
            with written_aside(path) as place, place.open("wb") as file:
                address = f"{self._path}/export{_query({'format': form})}"
                self.service.call("GET", address, into=file)
        except OSError as error:
            raise SettingError(f"{path}: cannot write it: {error.strerror or error}.") from None

    def verify(self) -> bool:
        """Let the service replay the whole journal and compare it with the state in use."""
        return bool(self._post("/verification", None)["sound"])


def _up_to(limit: int | None) -> Iterable[int]:
    return range(2**62 if limit is None else limit)


def _query(values: Mapping[str, Any]) -> str:
    return f"?{urlencode(values)}" if values else ""


def _words(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python's."""
    if not hasattr(value, "item"):
        raise SettingError(f"{value!r} is not something that can be sent to a service.")
    return value.item()


def _write(response: http.client.HTTPResponse, file: BinaryIO) -> None:
    """Write an answer to a file, from its start and to its end."""
    file.seek(0)
    file.truncate()
    while piece := response.read(2**16):
        try:
            file.write(piece)
        except OSError as error:
            raise SettingError(
                f"{file.name}: cannot write it: {error.strerror or error}."
            ) from None
    if response.length:  # read in pieces, an answer that breaks off just ends
        raise http.client.IncompleteRead(b"", response.length)


def _document(answer: bytes) -> Any:
    try:
        return json.loads(answer)
    except ValueError:
        return None


def _understood(status: int, answer: bytes) -> Any:
    """The content of an answer; raises if it is an error."""
    if status == 204:
        return None
    if 200 <= status < 300:
        document = _document(answer) if answer else {}
        if document is None:
            raise ServiceError("the service's answer is not JSON; is the address right?")
        return document
    raise _error(status, answer)


def _error(status: int, answer: bytes) -> SimplexploreError:
    document = _document(answer)
    if not isinstance(document, dict) or "type" not in document:
        return ServiceError(f"the service answered with status {status}; is the address right?")
    return from_problem(document)
