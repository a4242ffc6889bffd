"""The commands of live studies: arguments in, text or JSON out."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simplexplore import defaults
from simplexplore.errors import SettingError
from simplexplore.report.json_text import to_json

from .options import (
    DEFAULT_STORE,
    AsJson,
    Budget,
    Delta,
    ProblemFile,
    StopRegret,
    StoreUrl,
    with_goal,
)
from .terminal import console

if TYPE_CHECKING:
    from simplexplore.study.pulls import Told
    from simplexplore.study.study import Study

commands = typer.Typer(
    no_args_is_help=True,
    help="Live experiments: ask which arm to play, tell what came of it, for weeks if need be.",
)

StudyName = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="The study's name.")
]
Key = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        show_default=False,
        help="Names the request, so that repeating it is safe.",
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
    budget: Budget = None,
    scenario: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            show_default=False,
            help="end-of-time or anytime, instead of the file's.",
        ),
    ] = None,
    threshold: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="When to stop: tilt, mixture or kk21 (proven), gk16 or paper (not).",
        ),
    ] = defaults.THRESHOLD,
    seed: Annotated[int, typer.Option(metavar="S", help="Of the sampler's own choices.")] = 0,
    expire_after: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Give up pulls without an answer after this time (90s, 15m, 12h, 7d, never).",
        ),
    ] = "1d",
    as_json: AsJson = False,
) -> None:
    """Start a study of a problem."""
    from simplexplore.problem.problem import Problem
    from simplexplore.study.study import Study

    seconds = parse_time(expire_after)
    problem = Problem.from_file(file)
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
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            show_default=False,
            help="Many rewards: columns reward, and pull or arm, and key if there are keys. All "
            "are taken in, or none.",
        ),
    ] = None,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Report rewards."""
    given = values or []
    wanted = 0 if file is not None else 1 if arm is not None else 2
    if file is not None and key is not None:
        raise SettingError("--key names one reward; in a file, keys have a column of their own.")
    if len(given) != wanted or (file is not None and arm is not None):
        raise SettingError(
            "tell NAME PULL REWARD, or tell NAME --arm ARM REWARD, or tell NAME --file FILE.csv; "
            f"got {' '.join(given) or 'neither pull nor reward'}."
        )
    reward = parse_reward(given[-1]) if given else 0.0
    with _open(store, name) as study:
        if file is not None:
            told = study.import_csv(file)
        else:
            told = [study.tell(given[0] if arm is None else None, reward, arm=arm, key=key)]
        if as_json:
            typer.echo(to_json({"rewards": [asdict(one) for one in told], "answer": study.answer}))
            return
        _say(study, told)


def _say(study: "Study", told: "list[Told]") -> None:
    """What became of rewards, and whether the study has its answer."""
    from simplexplore.problem.spelling import count

    outcomes = [one.outcome for one in told]
    parts = [
        text.format(outcomes.count(outcome))
        for outcome, text in (
            ("repeated", "{} known already"),
            ("late", "{} late"),
            ("elsewhere", "{} made elsewhere"),
        )
        if outcome in outcomes
    ]
    told_of = f" ({', '.join(parts)})" if parts else ""
    typer.echo(f"{count(len(told), 'reward')}{told_of}.")
    if study.stopped:
        typer.echo(study.answer_in_words)


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
def list_studies(store: StoreUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the studies of a store."""
    from simplexplore.report.study_table import print_studies
    from simplexplore.study.study import Study

    found = Study.list(store)
    if as_json:
        typer.echo(to_json({"studies": found}))
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


def _open(store: str, name: str) -> "Study":
    from simplexplore.study.study import Study

    return Study.open(store, name)
