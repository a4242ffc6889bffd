"""The commands of pulls and their rewards: asking, handing over, telling, striking out."""

import shlex
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplexplore.errors import SettingError, UnlikelyError
from simplexplore.tabular import read_number

from .options import number, parse_measurements
from .study_command import Key, Outcome, Reason, with_answer

if TYPE_CHECKING:
    from simplexplore.study.pulls import Pull, Told
    from simplexplore.study.records import CheckedFile
    from simplexplore.study.study import Study

By = Annotated[
    str | None, typer.Option(metavar="WHO", help="Who makes the pulls, such as a kitchen.")
]
PullNames = Annotated[list[str], typer.Argument(metavar="PULL...", help="Ids of pulls.")]
RewardedPull = Annotated[
    str | None, typer.Argument(metavar="[PULL]", help="The pull whose reward it is.")
]
RewardEvent = Annotated[
    int | None, typer.Option("--event", metavar="N", help="Or the number of the reward's event.")
]


def ask(
    study: "Study",
    n: Annotated[int, typer.Option("-n", "--n", metavar="N", help="Pulls wanted.")] = 1,
    by: By = None,
    key: Key = None,
) -> Outcome:
    """Say which arms to play next: one line per pull, its id and its arm."""
    return _pulls(study.ask(n, by=by, key=key))


def _pulls(pulls: "list[Pull]") -> Outcome:
    """Pulls by line: id, arm and, where somebody has it, whose it is."""
    lines = ["\t".join((one.id, one.arm, *filter(None, [one.by]))) for one in pulls]
    return Outcome({"pulls": [asdict(one) for one in pulls]}, "\n".join(lines) if lines else None)


def pending(
    study: "Study",
    by: By = None,
    arm: Annotated[str | None, typer.Option(metavar="ARM", help="Only of this arm.")] = None,
) -> Outcome:
    """List pulls that have no reward yet: id, arm, and who makes them."""
    return _pulls(study.pending(by=by, arm=arm))


def assign(
    study: "Study",
    pulls: PullNames,
    by: Annotated[str, typer.Option(metavar="WHO", help="Who makes them.")],
) -> Outcome:
    """Let somebody else make pending pulls."""
    return _pulls(study.assign(pulls, by))


def release(
    study: "Study",
    pulls: PullNames,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why; it must not depend on the reward.")
    ] = "not made",
) -> Outcome:
    """Give back pulls that were not made: their arms can be asked for again."""
    return _pulls(study.release(pulls, reason))


def tell(
    study: "Study",
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PULL] [REWARD]", help="A pull and its reward; or --arm and that."),
    ] = None,
    arm: Annotated[
        str | None, typer.Option(metavar="ARM", help="Of a pull made elsewhere.")
    ] = None,
    measured: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="What the pull measured, once for each limit."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="Columns reward, pull or arm, one for each measured limit, and if need be key. "
            "All rewards are recorded, or none.",
        ),
    ] = None,
    n: Annotated[int | None, typer.Option(metavar="N", help="Of a sum: how many rewards.")] = None,
    mean: Annotated[float | None, number("--mean", "NUMBER", "Their mean (gaussian).")] = None,
    sd: Annotated[
        float | None, number("--sd", "NUMBER", "Their standard deviation (sigma unknown).")
    ] = None,
    successes: Annotated[int | None, typer.Option(metavar="N", help="1s (bernoulli).")] = None,
    total: Annotated[int | None, typer.Option(metavar="N", help="Their sum (poisson).")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="What looks impossible is meant.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only say what rows are wrong.")] = False,
    key: Key = None,
) -> Outcome:
    """Report rewards."""
    from simplexplore.study.pulls import Reward

    given = values or []
    if options := [one for one in given if one.startswith("--")]:
        raise SettingError(
            f"tell has no option {options[0]}; 'simplexplore study tell --help' lists them."
        )
    sums: dict[str, Any]
    sums = {"n": n, "mean": mean, "sd": sd, "successes": successes, "total": total}
    is_sum = any(value is not None for value in sums.values())
    if file is not None:
        fits = not (given or arm or is_sum)
        if key is not None or measured:
            raise SettingError("--file: keys and measurements have columns of their own there.")
    else:
        fits = len(given) == (2 if arm is None else 0 if is_sum else 1)
        if check:
            raise SettingError("--check is for a file of rewards: add --file FILE.csv.")
    if not fits or (is_sum and arm is None):
        raise SettingError(
            "tell NAME PULL REWARD, or tell NAME --arm ARM REWARD, or tell NAME --file FILE.csv, "
            "or for many rewards tell NAME --arm ARM --key TEXT --n N, with --mean, --successes or "
            f"--total; got {' '.join(given) or 'neither pull nor reward'}."
        )
    if file is not None:
        if check:
            return _faults_in_words(study.check_csv(file))
        record = partial(study.import_csv, file)
    else:
        measurements = parse_measurements(measured or [])
        _check_names(study, measurements)
        reward = read_number(given[-1], "the reward") if given else None
        pull = given[0] if len(given) == 2 else None
        single = Reward(reward, pull, arm, key, measurements or None, **sums)
        record = partial(study.tell_many, [single])
    told = _told_or_asked(record, yes=yes)
    data = {"rewards": [asdict(one) for one in told], "answer": study.answer}
    return Outcome(data, _told_in_words(study, told))


def _told_or_asked(record: "Callable[..., list[Told]]", *, yes: bool) -> "list[Told]":
    """Record rewards; ask who sits at a terminal about those that look impossible."""
    if not yes:
        try:
            is_there = sys.stdin.isatty() and sys.stderr.isatty()
            return record(unlikely="ask" if is_there else "hold")
        except UnlikelyError as error:
            typer.echo(str(error), err=True)
            if not typer.confirm("Is it meant? Then it is recorded.", err=True):
                raise SettingError("nothing was recorded.") from None
    return record(unlikely="accept")


def _check_names(study: "Study", given: dict[str, float]) -> None:
    """Say which options are missing, where every pull comes with measurements."""
    missing = [row.name for row in study.problem.measured if row.name not in given]
    if missing and given.keys() <= {row.name for row in study.problem.measured}:
        options = " ".join(f"--measured {shlex.quote(f'{name}=NUMBER')}" for name in missing)
        raise SettingError(f"{', '.join(missing)} is missing: add {options}.")


def _told_in_words(study: "Study", told: "list[Told]") -> str:
    """How rewards were recorded, and whether the study has its answer."""
    from simplexplore.problem.messages import count

    kinds = {"repeated": "known already", "late": "late"}
    kinds |= {"elsewhere": "made elsewhere", "batch": "as sums"}
    found = Counter(one.outcome for one in told)
    parts = [f"{found[kind]:,} {words}" for kind, words in kinds.items() if found[kind]]
    details = f" ({', '.join(parts)})" if parts else ""
    words = f"Recorded {count(len(told), 'reward')}{details}."
    held = [f"\n{one.reward:g} looks impossible for {one.arm!r}." for one in told if one.held]
    if held:
        words += "".join(held) + (
            "\nThe study does not stop before it is confirmed ('study confirm') or voided "
            "('study void'); 'study status' shows what is held."
        )
    return with_answer(study, words)


def _faults_in_words(found: "CheckedFile") -> Outcome:
    """Which rows of a file are wrong; exit 2 if there are some."""
    from simplexplore.problem.messages import count

    lines = [f"line {fault['line']}: {fault['text']}" for fault in found["faults"]]
    good = count(len(found["rows"]), "row")
    lines.append(f"{good} can be imported, {len(found['faults'])} cannot.")
    return Outcome(found, "\n".join(lines), 2 if found["faults"] else 0)


def void(
    study: "Study",
    pull: RewardedPull = None,
    reason: Reason = "",
    event: RewardEvent = None,
    key: Key = None,
) -> Outcome:
    """Void a reward: the study goes on as if it had never been told."""
    recorded = study.void(pull, reason=reason, event=event, key=key)
    words = with_answer(study, f"Voided the reward of event {recorded['voids']}.")
    return Outcome(recorded, words)


def confirm(
    study: "Study", pull: RewardedPull = None, event: RewardEvent = None, key: Key = None
) -> Outcome:
    """Say that a reward is meant although it looks impossible: it holds no decision any more."""
    recorded = study.confirm(pull, event=event, key=key)
    words = with_answer(study, f"Confirmed the reward of event {recorded['confirms']}.")
    return Outcome(recorded, words)
