"""`everlong lab`: what survives of real conversations, under which strategy, at which budget."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import TypeVar

import click

from everlong.cli.lab.clients import clients_command
from everlong.cli.lab.options import DATA, HALF, HTML, JOBS, JSON, LANGUAGE, WORK_FILES, names_listed, tokens_listed
from everlong.cli.lab.replay import replay_command
from everlong.cli.lab.speed import speed_command
from everlong.cli.lab.survival_table import print_results
from everlong.cli.maps.wording import language_from
from everlong.cli.terminal.files import source_bytes, write_page
from everlong.cli.terminal.streams import print_json
from everlong.cli.terminal.tables import progress
from everlong.errors import InputError
from everlong.lab import (
    DIALOGUE_STRATEGIES,
    WORK_STRATEGIES,
    Cases,
    Conversation,
    Job,
    Plan,
    Result,
    agents,
    conversations_in,
    counter,
    data_folder,
    dialogue_names,
    edit_cases,
    every,
    in_half,
    measured,
    probe_cases,
    probes_in,
    question_cases,
    run,
    save,
    strategy_named,
    summed,
)

__all__ = ["lab_command"]

WORK_BUDGETS = (8_000, 16_000, 32_000, 64_000)
DIALOGUE_BUDGETS = (500, 1_000, 2_000, 4_000, 8_000, 16_000)

Command = TypeVar("Command", bound=Callable[..., None])


@dataclass(frozen=True, slots=True)
class Asked:
    """The options that every measure takes."""

    half: str
    budgets: tuple[int, ...]
    strategies: tuple[str, ...]
    step: int
    processes: int
    as_json: bool
    html: str | None
    language: str
    raw_arguments: bool = False


@click.group("lab", short_help="Measure what survives a cut.")
def lab_command() -> None:
    """Measure what survives a cut: on your own conversations, or on public ones."""


lab_command.add_command(clients_command)
lab_command.add_command(replay_command)
lab_command.add_command(speed_command)


OPTIONS = (
    HALF,
    click.option("--budgets", default="", callback=tokens_listed, metavar="N,N", help="Tokens that may be sent."),
    click.option("--strategy", "strategies", multiple=True, metavar="NAME", help="What to measure; may be repeated."),
    click.option("--every", "step", type=click.IntRange(min=1), default=1, metavar="N", help="Only every Nth case."),
    JOBS,
    JSON,
    HTML,
    LANGUAGE,
)


def measure_options(command: Command) -> Command:
    """The options that every measure takes."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


@lab_command.command("probes", short_help="Strings that the agent used later: still there?")
@click.argument("transcripts", nargs=-1, metavar="[FILE]...")
@DATA
@click.option("--files", default=WORK_FILES, metavar="NAME,NAME", help=f"Files in agents/ (default: {WORK_FILES}).")
@click.option("--save", "folder", metavar="DIR", help="With FILE: write the conversations and probes as a data folder.")
@click.option("--raw-arguments", is_flag=True, help="Arguments of calls count only as they are sent, escapes and all.")
@measure_options
def probes_command(
    transcripts: tuple[str, ...], data: str | None, files: str, folder: str | None, **options: object
) -> None:
    """Strings that the agent used later: are they still there?

    With FILE, probes are made from your own transcripts, in any format that everlong reads.
    """
    asked = _asked(options, WORK_STRATEGIES, WORK_BUDGETS)
    if transcripts:
        found = [one for path in transcripts for one in conversations_in(source_bytes(path), path)]
        chosen = [one for one in found if in_half(one.id, asked.half)]
        cases = [probes for one in chosen if (probes := probes_in(one, counter())).cases]
        if folder is not None:
            save(Path(folder), chosen, cases)
        name = "+".join(Path(path).name for path in transcripts)
    else:
        if folder is not None:
            raise click.UsageError("--save writes what was made from FILE; name one")
        cases = probe_cases(data_folder(data), names_listed(files), asked.half)
        name = "+".join(names_listed(files))
    _tell(_measured("probes", name, cases, asked), asked)


@lab_command.command("edits", short_help="Texts that the agent replaces next: still there?")
@DATA
@click.option("--files", default=WORK_FILES, metavar="NAME,NAME", help=f"Files in agents/ (default: {WORK_FILES}).")
@measure_options
def edits_command(data: str | None, files: str, **options: object) -> None:
    """Texts that the agent replaces next: are they still there, line after line?"""
    asked = _asked(options, WORK_STRATEGIES, WORK_BUDGETS)
    folder = data_folder(data)
    conversations = (one for name in names_listed(files) for one in agents(folder, name, asked.half))
    _tell(_measured("edits", "+".join(names_listed(files)), edit_cases(conversations), asked), asked)


@lab_command.command("dialogs", short_help="Turns that answer a later question: still there?")
@DATA
@click.option("--files", default="", metavar="NAME,NAME", help="Data sets (default: all that are there).")
@measure_options
def dialogs_command(data: str | None, files: str, **options: object) -> None:
    """Turns that answer a question asked much later: are they still there?"""
    asked = _asked(options, DIALOGUE_STRATEGIES, ())
    folder = data_folder(data)
    names = names_listed(files) or dialogue_names(folder)
    if not names:
        raise InputError(f"{folder}: no dialogues; docs/lab.md describes the data folder")
    cases = {name: question_cases(folder, name, asked.half) for name in names}
    asked_of = [name for name in names if cases[name]] or names  # a small data set may have nothing in a half
    _tell([result for name in asked_of for result in _measured("dialogs", name, cases[name], asked)], asked)


def _asked(options: dict[str, object], strategies: Sequence[str], budgets: tuple[int, ...]) -> Asked:
    chosen = tuple(dict.fromkeys(options.pop("strategies") or strategies))  # type: ignore[call-overload]
    for name in chosen:
        strategy_named(name)  # a name that is wrong is told before anything is read
    language = str(options.pop("language") or language_from(os.environ))
    return Asked(
        strategies=chosen,
        budgets=options.pop("budgets") or budgets,  # type: ignore[arg-type]
        language=language,
        **options,  # type: ignore[arg-type]
    )


def _measured(measure: str, data: str, cases: Iterable[Cases], asked: Asked) -> list[Result]:
    chosen = every(cases, asked.step)
    if not chosen:
        raise InputError(f"{data}: nothing to measure ({asked.half})")
    budgets = asked.budgets or _useful(group.conversation for group in chosen)
    plan = Plan(measure, asked.strategies, budgets, decoded=not asked.raw_arguments)
    jobs = [Job(plan, group) for group in chosen]
    with progress(f"{measure} {data}", sum(len(group.cases) for group in chosen)) as tell:
        outcomes = run(measured, jobs, asked.processes, size=_size, tell=lambda job: tell(len(job.asked.cases)))
    return summed(plan, data, asked.half, len(chosen), chain.from_iterable(outcomes))


def _size(job: Job) -> int:
    return len(job.asked.cases) * len(job.asked.conversation.messages)


def _useful(conversations: Iterable[Conversation]) -> tuple[int, ...]:
    """The usual budgets for dialogues, as far as anything must be cut for them."""
    longest = max(counter().messages(one.messages) for one in conversations)
    return tuple(budget for budget in DIALOGUE_BUDGETS if budget < longest) or DIALOGUE_BUDGETS[:1]


def _tell(results: Sequence[Result], asked: Asked) -> None:
    if asked.html is not None:
        from everlong.lab import measures_page  # noqa: PLC0415 - only where a page is asked for

        write_page(measures_page(results, language=asked.language), asked.html)
    if asked.as_json:
        print_json([asdict(result) for result in results])
    elif asked.html != "-":
        print_results(results, asked.language)
