"""Cases of `digests.py`: what the command line prints, and what a service answers."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

from digest_runs import EXAMPLES
from digest_values import blanked, without

PULL = re.compile(r"\b[0-9a-f]{6}-(\d+)-[0-9a-f]{4}\b")
COMMAND = (sys.executable, "-m", "simplexplore")
STAR = (EXAMPLES / "star.toml").read_text(encoding="utf-8")


class Known:
    """Ids of pulls that were seen; {1} in a text stands for the first pull's."""

    def __init__(self):
        self._ids = {}

    def see(self, text):
        self._ids |= {int(found[1]): found[0] for found in PULL.finditer(text)}

    def put(self, text):
        return re.sub(r"\{(\d+)\}", lambda it: self._ids[int(it[1])], text)


# ---------------------------------------------------------------------- the command line

SIMULATE = "simulate star.toml --runs 5 --workers 1 --max-steps 3000 --json --threshold gk16 "
ANSWERS = "create meal.toml; ask meal -n 4; tell meal {1} 7; tell meal {2} 6.5; tell meal {3} 5;"

# Each runs in a folder of its own; commands of a study are separated by semicolons.
LINES = {
    "version": "--version",
    "bound of star": "bound star.toml",
    "bound of star as JSON": "bound star.toml --json",
    "bound of meal": "bound meal.toml --delta 0.01",
    "bound of movies": "bound movies.toml",
    "bound with other means": "bound trial.toml --means 0.3,0.4,0.5,0.6,0.7",
    "bound with epsilon": "bound star.toml --epsilon 0.1",
    "bound with a budget": "bound meal.toml --budget 300",
    "bound with costs": "bound laboratory.toml",
    "bound with limits on exploration": "bound strict_trial.toml",
    "bound with a measured limit": "bound dose_mix.toml",
    "simulate as JSON": SIMULATE,
    "simulate several": SIMULATE + "--sampler ctns,uniform,oracle --scenario both",
    "simulate an own sampler": SIMULATE + "--sampler weakest_edge.py",
    "simulate an own threshold": SIMULATE.replace("gk16", "cautious.py"),
    "no such file": "bound nothing.toml",
    "no such command": "bond star.toml",
    "no such option": "bound star.toml --dleta 0.1",
    "a wrong delta": "bound star.toml --delta 2",
    "too few means": "bound star.toml --means 1,2",
    "no such sampler": "simulate star.toml --sampler top-tow",
    "no such threshold": "simulate star.toml --threshold tlit",
    "a wrong key": "bound wrong_key.toml",
    "a wrong constraint": "bound wrong_constraint.toml",
    "an infeasible problem": "bound infeasible.toml",
    "no such study": "study status nothing",
    "study, asked and told": f"study {ANSWERS}",
    "study, as JSON": "study create meal.toml --json; ask meal -n 2 --json; tell meal {1} 7 --json",
    "study, status": f"study {ANSWERS} status meal; status meal --json",
    "study, struck out": f"study {ANSWERS} void meal {{1}} --reason salt; status meal",
    "study, switched": "study create meal.toml; ask meal -n 2; pause meal; ask meal; resume meal; "
    "ask meal; archive meal; list; list --archived",
    "study, problem and notes": f"study {ANSWERS} problem meal; note meal salt; verify meal",
    "study, export": f"study {ANSWERS} export meal out.csv; export meal out.json",
    "study, refused": f"study {ANSWERS} create meal.toml; tell meal {{1}} 8; tell meal nobody 8; "
    "tell meal {2} seven; extend meal 0.5; ask meal -n 0",
    "study, a CSV file": "study create meal.toml; tell meal --file good.csv; "
    "tell meal --file bad.csv; tell meal --file bad.csv --check; list --json",
    "study, measured": "study create dose_mix.toml; ask dose_mix -n 2; tell dose_mix {1} 1; "
    "tell dose_mix {1} 1 --measured toxicity=0.7; status dose_mix",
}
FILES = {
    "wrong_key.toml": STAR.replace("delta", "dleta"),
    "wrong_constraint.toml": STAR.replace("c + d <= 0.5", "c + d <= <= 0.5"),
    "infeasible.toml": STAR.replace("a + b <= 0.5", "a + b >= 0.6") + 'third = "a + b <= 0.55"\n',
    "good.csv": "arm,reward,key\npizza,7,1\nsalmon,8,2\n",
    "bad.csv": "arm,reward\npizza,7\npasta,8\nsalmon,x\n",
}


def _environment(**changes):
    kept = {name: x for name, x in os.environ.items() if not name.startswith("SIMPLEXPLORE_STORE")}
    return kept | {"COLUMNS": "80", "NO_COLOR": "1"} | changes


def called(line, folder):
    """Standard output, standard error and exit status of one command."""
    done = subprocess.run(
        [*COMMAND, *line.split()],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    # The first use on a machine says so.
    errors = [one for one in done.stderr.splitlines() if not one.startswith("compiling ")]
    return done.stdout, "\n".join(errors), done.returncode


def printed(line):
    """What a command prints, or several of a study one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        for path in (*EXAMPLES.glob("*.toml"), *EXAMPLES.glob("*.py")):
            shutil.copy(path, folder)
        for name, text in FILES.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        known, found = Known(), []
        group = "study " if ";" in line else ""
        for one in line.removeprefix(group).split(";"):
            out, errors, status = called(known.put(group + one), folder)
            known.see(out)
            found.append([one.strip(), blanked(out, folder), blanked(errors, folder), status])
        for name in ("out.csv", "out.json"):
            path = Path(folder) / name
            if path.exists():
                found.append([name, blanked(path.read_text(encoding="utf-8"), folder)])
        return found


def commands():
    """Command lines, with what is wrong with some."""
    for name, line in LINES.items():
        yield name, partial(printed, line)


# ---------------------------------------------------------------------- the service

MIX = "/v1/studies/mix"
REQUESTS = (
    ("health", "GET /health"),
    ("no studies", "GET /v1/studies"),
    ("setup", "GET /v1/setup"),
    ("bound", "POST /v1/bound", {"problem": STAR, "delta": 0.05}),
    ("bound of nothing", "POST /v1/bound", {"problem": "arms = 3"}),
    ("bound, a wrong line", "POST /v1/bound", {"problem": STAR.replace("delta", "dleta")}),
    ("create", "POST /v1/studies", {"name": "mix", "problem": STAR}),
    ("create again", "POST /v1/studies", {"name": "mix", "problem": STAR}),
    ("create, no such sampler", "POST /v1/studies", {"name": "x", "problem": STAR, "sampler": "y"}),
    ("create, an unknown key", "POST /v1/studies", {"name": "x", "problem": STAR, "y": 1}),
    ("about", f"GET {MIX}"),
    ("ask", f"POST {MIX}/pulls", {"n": 8}, "first"),
    ("ask, repeated", f"POST {MIX}/pulls", {"n": 8}, "first"),
    ("ask, another under the key", f"POST {MIX}/pulls", {"n": 2}, "first"),
    ("ask for none", f"POST {MIX}/pulls", {"n": 0}),
    ("ask for too many", f"POST {MIX}/pulls", {"n": 10**9}),
    ("pending", f"GET {MIX}/pulls"),
    (
        "tell",
        f"POST {MIX}/rewards",
        {"rewards": [{"pull": f"{{{i}}}", "reward": i / 4} for i in range(1, 7)]},
    ),
    ("tell, repeated", f"POST {MIX}/rewards", {"rewards": [{"pull": "{1}", "reward": 0.25}]}),
    ("tell, another", f"POST {MIX}/rewards", {"rewards": [{"pull": "{1}", "reward": 0.5}]}),
    ("tell, unknown", f"POST {MIX}/rewards", {"rewards": [{"pull": "abc", "reward": 0.5}]}),
    ("tell, a text", f"POST {MIX}/rewards", {"rewards": [{"pull": "{7}", "reward": "x"}]}),
    ("tell, elsewhere", f"POST {MIX}/rewards", {"rewards": [{"arm": "a", "reward": 1}]}, "k"),
    ("tell, elsewhere again", f"POST {MIX}/rewards", {"rewards": [{"arm": "a", "reward": 1}]}, "k"),
    ("import, checked", f"POST {MIX}/imports", {"csv": "arm,reward\nb,1\nq,2\n", "check": True}),
    ("import, wrong", f"POST {MIX}/imports", {"csv": "arm,reward\nb,1\nq,2\n"}),
    ("import", f"POST {MIX}/imports", {"csv": "arm,reward\nb,1\ne,2\n"}, "file"),
    ("void", f"POST {MIX}/voids", {"pull": "{2}", "reason": "salt"}),
    ("void again", f"POST {MIX}/voids", {"pull": "{2}", "reason": "salt"}),
    ("note", f"POST {MIX}/notes", {"text": "hello"}),
    ("status", f"GET {MIX}/status"),
    ("history", f"GET {MIX}/history"),
    ("journal", f"GET {MIX}/journal?after=3&limit=10"),
    ("journal, a wrong limit", f"GET {MIX}/journal?limit=x"),
    ("problem", f"GET {MIX}/problem"),
    ("export as CSV", f"GET {MIX}/export?format=csv"),
    ("export as JSON", f"GET {MIX}/export?format=json"),
    ("pause", f"POST {MIX}/pause", {}),
    ("ask, paused", f"POST {MIX}/pulls", {"n": 1}),
    ("resume", f"POST {MIX}/resume", {}),
    ("extend", f"POST {MIX}/extension", {"delta": 0.01}),
    ("extend to more", f"POST {MIX}/extension", {"delta": 0.5}),
    ("verify", f"POST {MIX}/verification", {}),
    ("archive", f"POST {MIX}/archive", {}),
    ("studies, archived", "GET /v1/studies?archived=true"),
    ("no such study", "GET /v1/studies/none/status"),
    ("no such path", "GET /v1/nothing"),
    ("a wrong method", f"DELETE {MIX}"),
    ("no JSON", f"POST {MIX}/pulls", "n=1"),
)
# With the role of the token, which may be none.
WITH_TOKENS = (
    (None, "GET /v1/studies"),
    ("nonsense", "GET /v1/studies"),
    ("read", "GET /v1/studies"),
    ("read", f"POST {MIX}/pulls", {"n": 1}),
    ("run", f"POST {MIX}/archive", {}),
    ("run", "GET /v1/setup"),
    ("admin", "GET /v1/setup"),
)


class Service:
    """`simplexplore serve` in a process of its own."""

    def __init__(self, folder):
        self._folder, self._known = folder, Known()
        self._process = subprocess.Popen(
            [*COMMAND, "serve", "--store", "studies.db", "--port", "0", "--json"],
            cwd=folder,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._url = json.loads(self._process.stdout.readline())["url"]

    def answer(self, request, body=None, key=None, token=None):
        """Status and body, which is blanked."""
        method, path = request.split()
        headers = {"Content-Type": "application/json"}
        headers |= {"Idempotency-Key": key} if key else {}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        data = None
        if body is not None:
            text = body if isinstance(body, str) else json.dumps(body)
            data = (text if "arms" in text else self._known.put(text)).encode()
        asked = urllib.request.Request(self._url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=120) as response:
                status, text = response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                status, text = error.code, error.read().decode()
        self._known.see(text)
        text = blanked(text, self._folder)
        with contextlib.suppress(json.JSONDecodeError):
            return {"status": status, "body": without(json.loads(text))}
        return {"status": status, "body": text}

    def close(self):
        self._process.terminate()
        self._process.stdout.close()
        self._process.wait(60)


@contextlib.contextmanager
def served(folder):
    service = Service(folder)
    try:
        yield service
    finally:
        service.close()


def answers():
    """One request after the other to a service without tokens, then some to one that has them."""
    with tempfile.TemporaryDirectory() as folder, served(folder) as service:
        for name, *request in REQUESTS:
            yield name, partial(service.answer, *request)
    with tempfile.TemporaryDirectory() as folder:
        tokens = {None: None, "nonsense": "sx_nonsense"}
        for role in ("read", "run", "admin"):
            line = f"token create --role {role} --store studies.db --json"
            tokens[role] = json.loads(called(line, folder)[0])["token"]
        with served(folder) as service:
            for role, *request in WITH_TOKENS:
                ask = partial(service.answer, *request, token=tokens[role])
                yield f"{request[0]} with token {role}", ask
