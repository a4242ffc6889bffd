"""The commands of live studies: arguments in, text or JSON out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simplexplore import defaults

from . import options, pulls
from .study_command import Key, Outcome, Reason, study_command
from .terminal import say

if TYPE_CHECKING:
    from simplexplore.report.document import Document
    from simplexplore.study.study import Study

commands = typer.Typer(
    no_args_is_help=True,
    help="Live experiments: ask which arm to play and tell its reward, for weeks if needed.",
)


@commands.command()
def create(
    file: options.ProblemFile,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The study's name; default: the file's.")
    ] = None,
    store: options.StoreUrl = options.DEFAULT_STORE,
    sampler: Annotated[
        str, typer.Option(metavar="NAME", help="top-two, ctns, cge, ptns or uniform.")
    ] = defaults.SAMPLER,
    delta: options.Delta = None,
    stop_regret: options.StopRegret = None,
    epsilon: options.Epsilon = None,
    budget: options.Budget = None,
    scenario: options.Scenario = None,
    threshold: options.Threshold = defaults.THRESHOLD,
    seed: options.Seed = 0,
    expire_after: Annotated[
        str,
        typer.Option(metavar="TIME", help="When pulls without a reward expire (90s, 12h, never)."),
    ] = "1d",
    as_json: options.AsJson = False,
) -> None:
    """Start a study of a problem."""
    from simplexplore.study.study import Study

    seconds = options.parse_time(expire_after, "--expire-after")
    problem = options.read_problem(file, epsilon, stop_regret, budget)
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
        words = f"Study {study.name!r} is ready in {study.store.name}."
        say(study.about, words, as_json=as_json)


for function in (pulls.ask, pulls.pending, pulls.assign, pulls.release):
    study_command(commands)(function)
# A negative reward must not be taken for an option.
study_command(commands, context_settings={"ignore_unknown_options": True})(pulls.tell)
study_command(commands)(pulls.void)
study_command(commands)(pulls.confirm)


@study_command(commands)
def stop(study: "Study", reason: Reason = "", key: Key = None) -> Outcome:
    """Say that what is known is good enough: stop now, without the promise of delta."""
    answer = study.stop(reason, key=key)
    return Outcome({"answer": answer}, study.answer_in_words)


@study_command(commands)
def pause(study: "Study") -> Outcome:
    """Hand out no more pulls until resumed; rewards are still recorded."""
    study.pause()
    return _state(study, "is paused: it hands out no pulls and still records rewards")


@study_command(commands)
def resume(study: "Study") -> Outcome:
    """Let a study go on that was paused or archived."""
    study.resume()
    return _state(study, "is resumed")


@study_command(commands)
def archive(study: "Study") -> Outcome:
    """Put a study aside: it is not listed and records nothing until it is resumed."""
    study.archive()
    return _state(study, "is archived; 'study resume' brings it back")


def _state(study: "Study", words: str) -> Outcome:
    data = {"name": study.name, "state": study.state}
    return Outcome(data, f"Study {study.name!r} {words}.")


@study_command(commands)
def verify(study: "Study") -> Outcome:
    """Replay the whole journal and compare the result with the current state, bit by bit."""
    if study.verify():
        return Outcome({"sound": True}, "The journal is complete and reproduces the current state.")
    return Outcome({"sound": False}, "The journal does not reproduce the current state.", 1)


@study_command(commands)
def problem(study: "Study") -> Outcome:
    """Print the problem file of a study."""
    text = study.problem.to_text()
    return Outcome({"problem": text}, text.removesuffix("\n"))


@study_command(commands)
def status(study: "Study") -> Outcome:
    """Say how far a study is: policy, evidence, samples to go, use of the constraints."""
    from simplexplore.report.study_report import status_document

    found = study.status()
    return Outcome(found, status_document(found))


@study_command(commands)
def wait(
    study: "Study",
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="When to give up (90s, 15m, 12h, 7d, never).")
    ] = "never",
) -> Outcome:
    """Wait until a study has its answer: exit status 0, or 1 if there is none in time."""
    answer = study.wait(options.parse_time(timeout, "--timeout"))
    data = {"name": study.name, "state": study.state, "answer": answer}
    if answer is None:
        return Outcome(data, f"Study {study.name!r} has no answer after {timeout}.", 1)
    return Outcome(data, study.answer_in_words)


@commands.command("list")
def list_studies(
    store: options.StoreUrl = options.DEFAULT_STORE,
    archived: Annotated[bool, typer.Option("--archived", help="Archived ones, too.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """List the studies of a store."""
    from simplexplore.report.study_report import studies_document
    from simplexplore.study.study import Study

    found = Study.list(store, archived=archived)
    words: str | Document = studies_document(found)
    if not found and not archived and (hidden := len(Study.list(store, archived=True))):
        words = f"All studies here are archived ({hidden}): --archived lists them."
    say({"studies": found}, words, as_json=as_json)


@study_command(commands)
def export(
    study: "Study",
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A .csv or .json file.")],
) -> Outcome:
    """Write all pulls and rewards to a file."""
    total = study.export(out)
    return Outcome({"file": str(out), "pulls": total}, f"{total} pulls: {out}")


@commands.command()
def backup(
    out: Annotated[Path, typer.Argument(metavar="FILE", help="Where to copy it to.")],
    store: options.StoreUrl = options.DEFAULT_STORE,
    as_json: options.AsJson = False,
) -> None:
    """Copy a SQLite store as it is at this moment, while others use it."""
    from simplexplore.study.store import Store

    Store(store, must_exist=True).backup(out)
    say({"file": str(out)}, f"{store} is copied to {out}.", as_json=as_json)


@study_command(commands)
def note(
    study: "Study", text: Annotated[str, typer.Argument(metavar="TEXT", help="The remark.")]
) -> Outcome:
    """Put a remark into the journal."""
    return Outcome(study.note(text), None)


@study_command(commands)
def extend(
    study: "Study",
    delta: Annotated[float, options.number("--delta", "D", "The new, smaller delta.")],
) -> Outcome:
    """Go on with a smaller delta: more confidence, more samples."""
    study.extend(delta)
    words = f"Study {study.name!r} goes on with delta {delta:g}."
    if study.stopped:
        words = f"The evidence is enough already. {study.answer_in_words}"
    return Outcome({"delta": delta, "answer": study.answer}, words)
