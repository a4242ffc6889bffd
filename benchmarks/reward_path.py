"""The path of one told reward: files that its request passes, and calls back into a caller.

    python benchmarks/reward_path.py

One POST of a reward to a study that is warm (400 rewards, SQLite, five arms), in this process: the
guard of connections, which only sockets pass, is not among the files. A file is passed if a
function of it is called. A call back is one of a function whose file waits further up for the
call to return. docs/how_a_reward_is_kept.md says what each file does.
"""

# ruff: noqa: E402 - the profile must be set before threads begin

from __future__ import annotations

import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))
sys.path.insert(0, str(ROOT / "tests"))
PACKAGE = f"{ROOT / 'src' / 'simplexplore'}/"

calls: Counter[str] = Counter()
back: Counter[tuple[str, str]] = Counter()
recording = threading.Event()


def passed(frame: FrameType | None) -> str | None:
    name = "" if frame is None else frame.f_code.co_filename
    return name.removeprefix(PACKAGE) if name.startswith(PACKAGE) else None


def profile(frame: FrameType, event: str, _argument: object) -> None:
    name = passed(frame)
    if not recording.is_set() or event != "call" or name is None:
        return
    calls[name] += 1
    callers = []
    above = frame.f_back
    while above is not None:
        callers.append(passed(above))
        above = above.f_back
    known = [one for one in callers if one is not None]
    if known and known[0] != name and name in known:
        back[known[0], name] += 1


threading.setprofile(profile)
sys.setprofile(profile)

from starlette.testclient import TestClient

import simplexplore as sx
from simplexplore.service.app import make_app
from workers import MEANS, star


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"{folder}/path.db"
        sx.Study.create(url, "path", star()).close()
        with TestClient(make_app(url), base_url="http://localhost") as client:

            def ask() -> dict[str, object]:
                (pull,) = client.post("/v1/studies/path/pulls", json={}).json()["pulls"]
                return {"pull": pull["id"], "reward": MEANS[pull["arm"]]}

            def tell(reward: dict[str, object]) -> None:
                answer = client.post("/v1/studies/path/rewards", json={"rewards": [reward]})
                assert answer.json()["rewards"][0]["outcome"] == "told"

            for _ in range(400):
                tell(ask())
            last = ask()
            recording.set()
            tell(last)
            recording.clear()
    print(f"{len(calls)} files, {calls.total()} calls")
    for name, count in calls.items():
        print(f"{count:5} {name}")
    for (caller, name), count in back.items():
        print(f"back from {caller} to {name}: {count}")


if __name__ == "__main__":
    main()
