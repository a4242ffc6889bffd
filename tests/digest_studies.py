"""Cases of `digests.py`: live studies of a store; times and random ids are blanked."""

import tempfile
import time
from functools import partial
from pathlib import Path

import postgres
import simplexplore as sx
from digest_runs import MEANS, TOXICITY, five, rewards_of
from digest_values import blanked, plain


class Script:
    """A study that is driven by a script, and what it answered."""

    def __init__(self, url, folder, name, problem, **settings):
        self._folder, self.problem, self.said = folder, problem, []
        self.study = sx.Study.create(url, name, problem, **settings)
        self._rewards = rewards_of(problem, 4000)

    def __call__(self, method, *arguments, **settings):
        """Call a method; errors of the user's are answers, too."""
        try:
            found = getattr(self.study, method)(*arguments, **settings)
        except sx.SimplexploreError as error:
            found = f"{type(error).__name__}: {error}"
        self.said.append([method, plain(found, self._folder)])
        return found

    def reward(self, pull):
        """The reward of a pull, a function of its number and its arm."""
        number = int(pull.id.split("-")[1])
        return float(self._rewards[number, self.problem.arms.index(pull.arm)])

    def measured(self, pull):
        return {row.name: self.reward(pull) / 2 for row in self.problem.measured} or None

    def tell(self, pulls):
        for pull in pulls:
            self("tell", pull, self.reward(pull), measured=self.measured(pull))

    def file(self, text):
        """A CSV file for the study to read."""
        path = Path(self._folder) / "rewards.csv"
        path.write_text(text, encoding="utf-8")
        return path

    def everything(self):
        """What was said, and what the study says of itself at the end."""
        found = {"said": self.said}
        for method in ("events", "history", "status", "pending", "rows", "verify"):
            found[method] = plain(getattr(self.study, method)(), self._folder)
        for name in ("about", "answer", "answer_in_words", "state"):
            found[name] = plain(getattr(self.study, name), self._folder)
        for name in ("out.csv", "out.json"):
            path = Path(self._folder) / name
            self.study.export(path)
            found[name] = blanked(path.read_text(encoding="utf-8"), self._folder)
        self.study.close()
        return found


def one_by_one(run):
    for _ in range(25):
        run.tell(run("ask"))


def batches(run):
    first = run("ask", 16, key="first")
    run("ask", 16, key="first")
    run("ask", 3, key="first")
    run("tell_many", [(pull, run.reward(pull)) for pull in first[:10]])
    run("tell_many", [(pull, run.reward(pull)) for pull in first])
    run("tell", first[0], run.reward(first[0]) + 1)
    run("ask", 40)


def late(run):
    first = run("ask", 6)
    time.sleep(0.4)
    second = run("ask", 6)  # the first six expire
    run.tell([*first[:4], *second, *first[2:]])


def struck_out(run):
    pulls = run("ask", 12)
    run.tell(pulls)
    run("tell", arm=run.problem.arms[1], reward=1.0)
    run("void", pulls[3], reason="a broken thermometer", key="once")
    run("void", pulls[3], reason="a broken thermometer", key="once")
    run("void", pulls[3], reason="again")
    run("void", event=run.study.head - 1, reason="another dish")
    run("tell", pulls[3], 0.0)
    run.tell(run("ask", 4))


def switched(run):
    pulls = run("ask", 8)
    for method in ("pause", "pause", "ask"):
        run(method)
    run.tell(pulls[:4])
    for method in ("resume", "ask", "archive", "ask", "pause"):
        run(method)
    run.tell(pulls[4:5])
    run("extend", 1e-3)
    run("resume")
    run.tell(pulls[5:])


def extended(run):
    while not run.study.stopped:
        run.tell(run("ask", 12))
    run("ask")
    run("extend", 0.9)
    run("extend", 1e-4, key="surer")
    run("extend", 1e-4, key="surer")
    run.tell(run("ask", 8))
    run("note", "a smaller delta")


def elsewhere(run):
    a, b, *_ = run.problem.arms
    run("tell", arm=a, reward=1.0, key="monday")
    run("tell", arm=a, reward=1.0, key="monday")
    run("tell", arm=a, reward=0.0, key="monday")
    run("tell", arm="nobody", reward=1.0)
    rows = "".join(f"{arm},{i % 2},k{i}\n" for i, arm in enumerate([a, b] * 6))
    for text in (f"arm,reward,key\n{rows}", "arm;reward\na1;0,0\n", "arm,reward\na1,x\nq,1\n"):
        run("check_csv", run.file(text))
        run("import_csv", run.file(text), key=None)
    run("import_csv", run.file(f"arm,reward\n{a},1\n"), key="file")
    run("import_csv", run.file(f"arm,reward\n{a},1\n"), key="file")
    run("note", "hello", key="note")
    run("note", "hello", key="note")


def refused(run):
    (pull,) = run("ask")
    for reward in (float("nan"), float("inf"), "7", None, True):
        run("tell", pull, reward)
    for wrong in ("nothing", "abcdef-1-0000", pull.id.replace("-1-", "-99-")):
        run("tell", wrong, 1.0)
    for n in (0, -1, 1.5, 10**6):
        run("ask", n)
    run("tell", pull, 1.0, measured={"toxicity": 1.0})
    run("note", "")
    run("void", pull, reason="it has none")
    run("extend", 2.0)
    run("extend", 0.5)


# Apart enough for studies to stop soon.
FAR = (2.0, 0.6, 0.3, 1.5, -1.0)
SCRIPTS = (one_by_one, batches, late, struck_out, switched, extended, elsewhere, refused)
PROBLEMS = {
    "gaussian": (five(means=FAR, scenario="anytime"), "top-two"),
    "bernoulli": (five(sx.Bernoulli(), means=(0.95, 0.3, 0.2, 0.9, 0.05)), "ctns"),
}
TO_THE_END = {
    "cge": (five(means=FAR), {"sampler": "cge", "threshold": "gk16"}),
    "ptns": (five(means=FAR), {"sampler": "ptns", "threshold": "mixture"}),
    "uniform": (five(means=FAR), {"sampler": "uniform"}),
    "poisson": (five(sx.Poisson(), means=(5.0, 2.0, 1.0, 4.0, 0.5)), {}),
    "bounded": (five(sx.Bounded(0.0, 1.0), means=(0.9, 0.3, 0.2, 0.8, 0.1)), {}),
    "unknown sigma": (five(sx.Gaussian("unknown"), means=(3.0, 1.0, 0.5, 2.0, -1.0)), {}),
    "costs": (five(means=FAR, costs={"a1": 5.0}), {}),
    "exploration": (
        five(means=FAR, exploration={"fair": "each >= 0.1"}),
        {},
    ),
    "budget": (five(stop_when={"budget": 60}), {}),
    "regret": (five(means=FAR, stop_when={"regret": 0.5}), {}),
    "epsilon": (five(means=FAR, epsilon=0.3), {}),
    "measured": (
        sx.Problem(4, means=MEANS[:4], epsilon=0.5, measured={"x": TOXICITY | {"tolerance": 0.3}}),
        {},
    ),
}


def scripted(url, folder, name, script, problem, sampler):
    expiry = 0.3 if script is late else None
    run = Script(url, folder, name, problem, sampler=sampler, seed=5, expire_after=expiry)
    script(run)
    return run.everything()


def to_the_end(url, folder, name, problem, settings):
    """Batches of ten until the study stops, or for 40 of them."""
    run = Script(url, folder, name, problem, expire_after=None, **settings)
    for _ in range(40):
        if run.study.stopped:
            break
        run.tell(run("ask", 10))
    return run.everything()


def studies(store="sqlite"):
    """Scripted studies, and studies that are driven to their end."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/studies.db"
        if store == "postgresql":
            if postgres.binaries() is None:
                return
            server = postgres.Server()
            url = server.database()
        for script in SCRIPTS:
            for family, (problem, sampler) in PROBLEMS.items():
                name = f"{script.__name__.replace('_', ' ')}, {family}"
                case = partial(scripted, url, folder, name, script, problem, sampler)
                yield f"{store}, {name}", case
        for name, (problem, settings) in TO_THE_END.items():
            yield f"{store}, {name}", partial(to_the_end, url, folder, name, problem, settings)
        yield f"{store}, list", lambda: plain(sx.Study.list(url, archived=True), folder)
        if store == "postgresql":
            server.close()


def studies_on_postgresql():
    """The same on PostgreSQL, where it is installed."""
    return studies("postgresql")
