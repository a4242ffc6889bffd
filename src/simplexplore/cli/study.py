"""The commands of live studies: arguments in, text or JSON out."""

import math
import re
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simplexplore import defaults
from simplexplore.errors import SettingError, SimplexploreError
from simplexplore.report.json_text import to_json

from .commands import Commands
from .options import (
    DEFAULT_STORE,
    AsJson,
    Budget,
    Delta,
    Epsilon,
    ProblemFile,
    StopRegret,
    StoreUrl,
    with_goal,
)
from .terminal import console, progress

if TYPE_CHECKING:
    from simplexplore.study.pulls import Told
    from simplexplore.study.records import CheckedFile
    from simplexplore.study.study import Study

commands = Commands(
    help="Live experiments: ask which arm to play and tell its reward, for weeks if needed.",
)


def _names_in_store(ctx: typer.Context, incomplete: str) -> list[str]:
    """Studies whose names begin so, for a shell that completes them."""
    from simplexplore.study.study import Study

    try:
        studies = Study.list(ctx.params.get("store") or DEFAULT_STORE)
    except SimplexploreError:
        return []
    return [study["name"] for study in studies if study["name"].startswith(incomplete)]


StudyName = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        show_default=False,
        help="The study's name.",
        autocompletion=_names_in_store,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        show_default=False,
        help="A name for the request; sent again under it, the request happens once.",
    ),
]

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@commands.command()
def create(
    file: ProblemFile,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default="the file's name", help="The study's name."),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    sampler: Annotated[
        str, typer.Option(metavar="NAME", help="top-two, ctns, cge, ptns or uniform.")
    ] = defaults.SAMPLER,
    delta: Delta = None,
    stop_regret: StopRegret = None,
    epsilon: Epsilon = None,
    budget: Budget = None,
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="end-of-time, anytime or, where the file has limits on exploration, exploration; "
            "instead of the file's.",
        ),
    ] = None,
    threshold: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="When to stop: tilt, mixture or kk21 (proven), gk16 or paper (not).",
        ),
    ] = defaults.THRESHOLD,
    seed: Annotated[
        int, typer.Option(metavar="S", help="Seed of the sampler's random choices.")
    ] = 0,
    expire_after: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Pulls without a reward expire after this time (90s, 15m, 12h, 7d, never).",
        ),
    ] = "1d",
    as_json: AsJson = False,
) -> None:
    """Start a study of a problem."""
    from simplexplore.problem.problem import Problem
    from simplexplore.study.study import Study

    seconds = parse_time(expire_after)
    problem = Problem.from_file(file)
    if epsilon is not None:
        problem = problem.replace(epsilon=epsilon)
    problem = with_goal(problem, stop_regret, budget)
    with Study.create(
        store,
        file.stem if name is None else name,
        problem,
        sampler,
        delta=delta,
        scenario=scenario,
        threshold=threshold,
        seed=seed,
        expire_after=seconds,
    ) as study:
        if as_json:
            typer.echo(to_json(study.about))
        else:
            typer.echo(f"Study {study.name!r} is ready in {study.store.name}.")


@commands.command()
def ask(
    name: StudyName,
    n: Annotated[int, typer.Option("-n", "--n", metavar="N", help="Pulls wanted.")] = 1,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Say which arms to play next: one line per pull, its id and its arm."""
    with _open(store, name) as study:
        pulls = study.ask(n, key=key)
    if as_json:
        typer.echo(to_json({"pulls": [asdict(pull) for pull in pulls]}))
        return
    for pull in pulls:
        typer.echo(f"{pull.id}\t{pull.arm}")


# A negative reward must not be taken for an option.
@commands.command(context_settings={"ignore_unknown_options": True})
def tell(
    name: StudyName,
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PULL] [REWARD]",
            show_default=False,
            help="A pull's id and its reward; the reward alone with --arm.",
        ),
    ] = None,
    arm: Annotated[
        str | None,
        typer.Option(
            metavar="ARM", show_default=False, help="The arm, for a pull that was made elsewhere."
        ),
    ] = None,
    measured: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER",
            show_default=False,
            help="A measurement of the pull, where limits are measured; once for each of them.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            show_default=False,
            help="Many rewards: a CSV file with the columns reward, pull or arm, one for each "
            "measured limit, and optionally key. All are recorded, or none.",
        ),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    check: Annotated[
        bool,
        typer.Option("--check", help="Only say which rows are wrong; record nothing."),
    ] = False,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Report rewards."""
    given = values or []
    for one in given:
        if one.startswith("--"):
            raise SettingError(
                f"tell has no option {one}; 'simplexplore study tell --help' lists them."
            )
    wanted = 0 if file is not None else 1 if arm is not None else 2
    if file is not None and key is not None:
        raise SettingError("--key names one reward; in a file, keys have a column of their own.")
    if file is not None and measured:
        raise SettingError(
            "--measured is for one pull; in a file, measurements have a column of their name."
        )
    if check and file is None:
        raise SettingError("--check is for a file of rewards: add --file FILE.csv.")
    if len(given) != wanted or (file is not None and arm is not None):
        raise SettingError(
            "tell NAME PULL REWARD, or tell NAME --arm ARM REWARD, or tell NAME --file FILE.csv; "
            f"got {' '.join(given) or 'neither pull nor reward'}."
        )
    reward = parse_reward(given[-1]) if given else 0.0
    measurements = parse_measurements(measured or []) or None
    with _open(store, name) as study:
        if check and file is not None:
            _say_faults(study.check_csv(file), as_json)
            return
        if file is not None:
            with progress("rewards") as bars:
                bar = bars.add_task("Importing", total=None)
                told = study.import_csv(
                    file,
                    progress=lambda done, total: bars.update(bar, completed=done, total=total),
                )
        else:
            _check_names(study, measurements or {})
            pull = given[0] if arm is None else None
            told = [study.tell(pull, reward, measured=measurements, arm=arm, key=key)]
        if as_json:
            typer.echo(to_json({"rewards": [asdict(one) for one in told], "answer": study.answer}))
            return
        _say(study, told)


def _check_names(study: "Study", given: dict[str, float]) -> None:
    """Say which options are missing, where every pull comes with measurements."""
    missing = [row.name for row in study.problem.measured if row.name not in given]
    if missing and given.keys() <= {row.name for row in study.problem.measured}:
        options = " ".join(f"--measured {shlex.quote(f'{name}=NUMBER')}" for name in missing)
        raise SettingError(f"{', '.join(missing)} is missing: add {options}.")


def _say(study: "Study", told: "list[Told]") -> None:
    """How rewards were recorded, and whether the study has its answer."""
    from simplexplore.problem.spelling import count

    outcomes = [one.outcome for one in told]
    parts = [
        text.format(outcomes.count(outcome))
        for outcome, text in (
            ("repeated", "{:,} known already"),
            ("late", "{:,} late"),
            ("elsewhere", "{:,} made elsewhere"),
        )
        if outcome in outcomes
    ]
    told_of = f" ({', '.join(parts)})" if parts else ""
    typer.echo(f"{count(len(told), 'reward')}{told_of}.")
    if study.stopped:
        typer.echo(study.answer_in_words)


def _say_faults(found: "CheckedFile", as_json: bool) -> None:
    """Which rows of a file are wrong; exit 2 if there are some."""
    from simplexplore.problem.spelling import count

    if as_json:
        typer.echo(to_json(found))
    else:
        for fault in found["faults"]:
            typer.echo(f"line {fault['line']}: {fault['text']}")
        good = count(len(found["rows"]), "row")
        typer.echo(f"{good} can be imported, {len(found['faults'])} cannot.")
    if found["faults"]:
        raise typer.Exit(2)


@commands.command()
def void(
    name: StudyName,
    pull: Annotated[
        str | None,
        typer.Argument(
            metavar="[PULL]", show_default=False, help="The pull whose reward is wrong."
        ),
    ] = None,
    reason: Annotated[
        str,
        typer.Option(metavar="TEXT", show_default=False, help="Why; it is kept in the journal."),
    ] = "",
    event: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            show_default=False,
            help="The number of the reward's event, for a pull made elsewhere.",
        ),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Strike a reward out: the study goes on as if it had never been told."""
    with _open(store, name) as study:
        recorded = study.void(pull, reason=reason, event=event, key=key)
        if as_json:
            typer.echo(to_json(recorded))
            return
        typer.echo(f"The reward of event {recorded['voids']} is struck out.")
        if study.stopped:
            typer.echo(study.answer_in_words)


@commands.command()
def pause(name: StudyName, store: StoreUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Hand out no more pulls until resumed; rewards are still recorded."""
    with _open(store, name) as study:
        study.pause()
        _say_state(study, "is paused: it hands out no pulls and still records rewards", as_json)


@commands.command()
def resume(name: StudyName, store: StoreUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Let a study go on that was paused or archived."""
    with _open(store, name) as study:
        study.resume()
        _say_state(study, "is resumed", as_json)


@commands.command()
def archive(name: StudyName, store: StoreUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Put a study aside: it is not listed and records nothing until it is resumed."""
    with _open(store, name) as study:
        study.archive()
        _say_state(study, "is archived; 'study resume' brings it back", as_json)


def _say_state(study: "Study", words: str, as_json: bool) -> None:
    if as_json:
        typer.echo(to_json({"name": study.name, "state": study.state}))
    else:
        typer.echo(f"Study {study.name!r} {words}.")


@commands.command()
def tag(
    name: StudyName,
    tags: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TAG]...", show_default=False, help="Tags; without any, all are removed."
        ),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Give a study these tags and no others."""
    with _open(store, name) as study:
        study.tag(*(tags or []))
    if as_json:
        typer.echo(to_json({"tags": tags or []}))


@commands.command()
def verify(name: StudyName, store: StoreUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Replay the whole journal and compare the result with the current state, bit by bit."""
    with _open(store, name) as study:
        sound = study.verify()
    if as_json:
        typer.echo(to_json({"sound": sound}))
    else:
        typer.echo(
            "The journal is complete and reproduces the current state."
            if sound
            else "The journal does not reproduce the current state."
        )
    if not sound:
        raise typer.Exit(1)


@commands.command()
def problem(name: StudyName, store: StoreUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Print the problem file of a study."""
    with _open(store, name) as study:
        text = study.problem.to_text()
    typer.echo(to_json({"problem": text}) if as_json else text, nl=as_json)


@commands.command()
def status(name: StudyName, store: StoreUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """Say how far a study is: policy, evidence, samples to go, use of the constraints."""
    from simplexplore.report.study_table import print_status

    with _open(store, name) as study:
        found = study.status()
    if as_json:
        typer.echo(to_json(found))
    else:
        print_status(found, console())


@commands.command("list")
def list_studies(
    store: StoreUrl = DEFAULT_STORE,
    archived: Annotated[bool, typer.Option("--archived", help="Archived ones, too.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the studies of a store."""
    from simplexplore.report.study_table import print_studies
    from simplexplore.study.study import Study

    found = Study.list(store, archived=archived)
    if as_json:
        typer.echo(to_json({"studies": found}))
    elif not found and not archived and (hidden := len(Study.list(store, archived=True))):
        typer.echo(f"All studies here are archived ({hidden}): --archived lists them.")
    else:
        print_studies(found, console())


@commands.command()
def export(
    name: StudyName,
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", show_default=False, help="A .csv, .json or .parquet file."),
    ],
    store: StoreUrl = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Write all pulls and rewards to a file."""
    with _open(store, name) as study:
        total = study.export(out)
    typer.echo(to_json({"file": str(out), "pulls": total}) if as_json else f"{total} pulls: {out}")


@commands.command()
def note(
    name: StudyName,
    text: Annotated[str, typer.Argument(metavar="TEXT", show_default=False, help="The remark.")],
    store: StoreUrl = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Put a remark into the journal."""
    with _open(store, name) as study:
        noted = study.note(text)
    if as_json:
        typer.echo(to_json(noted))


@commands.command()
def extend(
    name: StudyName,
    delta: Annotated[
        float, typer.Option(metavar="D", show_default=False, help="The new, smaller delta.")
    ],
    store: StoreUrl = DEFAULT_STORE,
    as_json: AsJson = False,
) -> None:
    """Go on with a smaller delta: more confidence, more samples."""
    with _open(store, name) as study:
        study.extend(delta)
        if as_json:
            typer.echo(to_json({"delta": delta, "answer": study.answer}))
        elif study.stopped:
            typer.echo(f"The evidence is enough already. {study.answer_in_words}")
        else:
            typer.echo(f"Study {name!r} goes on with delta {delta:g}.")


def parse_time(text: str) -> float | None:
    """Read a length of time; None for "never".

    Examples
    --------
    >>> parse_time("15m"), parse_time("1.5h"), parse_time("30"), parse_time("never")
    (900.0, 5400.0, 30.0, None)
    """
    if text == "never":
        return None
    found = re.fullmatch(r"(\d+\.?\d*)([smhd]?)", text.strip())
    if found is None:
        raise SettingError(f"--expire-after {text!r}: write 90s, 15m, 12h, 7d or never.")
    return float(found[1]) * _UNITS[found[2] or "s"]


def parse_reward(text: str) -> float:
    """Read a reward."""
    try:
        return float(text)
    except ValueError:
        raise SettingError(f"the reward {text!r} is not a number.") from None


def parse_measurements(texts: list[str]) -> dict[str, float]:
    """Read measurements.

    Examples
    --------
    >>> parse_measurements(["toxicity=0.2", "response=-1e-3"])
    {'toxicity': 0.2, 'response': -0.001}
    """
    found: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        name = name.strip()
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not name or math.isnan(value):
            raise SettingError(f"--measured {text!r}: write a name and a number, toxicity=0.2.")
        if name in found:
            raise SettingError(f"--measured {name!r} is given twice.")
        found[name] = value
    return found


def _open(store: str, name: str) -> "Study":
    from simplexplore.study.study import Study

    return Study.open(store, name)
