"""Check each conversation in a folder: readable, written back unchanged, valid for every provider; with --laws, lawful.

    python scripts/check_data.py DATA_DIR                    read, round trip, four formats
    python scripts/check_data.py DATA_DIR --laws             the laws, on a few prefixes of each conversation
    python scripts/check_data.py DATA_DIR --laws --every 1 --formats all --presets all      everything; takes hours

Reads *.json and *.jsonl, gzipped or not; files without conversations are counted and skipped. Prints one line per
failure, then a table; the exit code is 1 if anything failed.
"""

import argparse
import json
import sys
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from everlong.compress import PRESETS
from everlong.core import Json
from everlong.errors import InputError
from everlong.wire import (
    FORMATS,
    SESSION_FORMATS,
    Document,
    decode_bytes,
    document_of,
    problems,
    read_all,
    repair_history,
    sent_as,
    value_of,
)
from law_walks import Walk, walk

ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
UNNAMED_MODEL = "gpt-4o"
SHOWN_FAILURES = 200
WIDTH_OF_A_FILE = 180  # characters, if the output is not a terminal


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation, and the JSON that it was read from."""

    file: str
    name: str
    document: Document
    value: Json


@dataclass(slots=True)
class Outcome:
    """The results of one conversation."""

    file: str
    name: str
    messages: int
    #: Providers' objections before any repair, in the format in which it would be sent.
    before: int = 0
    warnings: int = 0
    views: int = 0
    impossible: int = 0
    failures: list[str] = field(default_factory=list)
    laws: Tally[int] = field(default_factory=Tally)


def main() -> int:
    options = arguments()
    console = Console(stderr=True)
    found, others = conversations_in(options.folder)
    if not found:
        sys.exit(f"{options.folder}: no conversations in it")
    chosen = found[:: max(1, len(found) // options.sample)][: options.sample] if options.sample else found
    work = partial(checked, options=options)
    outcomes = list(track(outcomes_of(chosen, work, options.jobs), "checking", len(chosen), console=console))
    if options.json:
        print(json.dumps(as_json(outcomes, others), indent=2))
    else:
        report(outcomes, others)
    return 1 if any(outcome.failures for outcome in outcomes) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DATA_DIR")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="only N conversations, spread evenly")
    parser.add_argument("--laws", action="store_true", help="also check the laws on views of each conversation")
    parser.add_argument("--every", type=int, default=0, metavar="K", help="every K-th prefix (default: about three)")
    parser.add_argument("--formats", default="own", help="own, all, or names with commas between (default: own)")
    parser.add_argument("--presets", default="auto", help="all, or names with commas between (default: auto)")
    parser.add_argument("--model", default="", help=f"count for this model (default: its own, else {UNNAMED_MODEL})")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes at once (default: 1)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    options.presets = tuple(PRESETS) if options.presets == "all" else tuple(options.presets.split(","))
    options.formats = {"all": FORMATS, "own": ()}.get(options.formats, tuple(options.formats.split(",")))
    for name in (*(set(options.presets) - PRESETS.keys()), *(set(options.formats) - set(FORMATS))):
        parser.error(f"no {name!r}; presets: {', '.join(PRESETS)}; formats: {', '.join(FORMATS)}")
    if not options.folder.is_dir():
        parser.error(f"{options.folder}: no such folder")
    return options


# --- finding -------------------------------------------------------------------------------------


def conversations_in(folder: Path) -> tuple[list[Conversation], list[str]]:
    """Return the conversations, and the files without any, with the reason."""
    found: list[Conversation] = []
    others: list[str] = []
    for path in sorted(path for path in folder.rglob("*") if path.name.endswith(ENDINGS) and path.is_file()):
        name = path.relative_to(folder).as_posix()
        try:
            found += list(conversations_of(name, path.read_bytes()))
        except InputError as error:
            others.append(f"{name}: {error}")
    return found, others


def conversations_of(name: str, data: bytes) -> Iterator[Conversation]:
    """Yield the conversations of a file.

    A session or a list of messages is one conversation; otherwise each row or each session of an export is one.
    """
    first, *others = read_all(data)
    decoded = decode_bytes(data)
    listed: list[Json] = decoded.document if isinstance(decoded.document, list) else [decoded.document]
    rows = [value for _, value in decoded.lines] or listed
    session = SESSION_FORMATS.get(first.fmt)
    if (session is not None and session.in_lines) or first.bare:
        yield Conversation(name, "", first, rows)
        return
    for number, row in enumerate(rows, start=1):
        label = str(row.get("id") or number) if isinstance(row, dict) else ""
        if isinstance(row, dict) and "messages" not in row and session is not None:
            for each in (first, *others):
                yield Conversation(name, each.messages[0].text[:20], each, value_of(each))
        else:
            yield Conversation(name, label, document_of(row), row)


# --- checking ------------------------------------------------------------------------------------


def outcomes_of(chosen: list[Conversation], work: "partial[Outcome]", jobs: int) -> Iterator[Outcome]:
    if jobs <= 1:
        yield from map(work, chosen)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(work, chosen, chunksize=1)


def checked(conversation: Conversation, options: argparse.Namespace) -> Outcome:
    document = conversation.document
    outcome = Outcome(conversation.file, conversation.name, len(document.messages))
    outcome.warnings = len(document.warnings)
    if not same(value_of(document), conversation.value):
        outcome.failures.append("round trip: it is not written as it was read")
    own = sent_as(document)
    outcome.before = len(problems(own, FORMATS[own].write_history(document.messages)))
    for fmt in FORMATS:
        objections = problems(fmt, FORMATS[fmt].write_history(repair_history(document.messages, fmt).messages))
        outcome.failures += [f"{fmt}, once repaired: {objection}" for objection in objections[:3]]
    if options.laws:
        formats = options.formats or (own,)
        model = options.model or document.model or UNNAMED_MODEL
        for preset in options.presets:
            keep_laws(document, Walk(PRESETS[preset], formats, model, options.every), outcome)
    return outcome


def keep_laws(document: Document, what: Walk, outcome: Outcome) -> None:
    walk(document.messages, what)
    outcome.views += what.views
    outcome.impossible += what.impossible
    for found in what.found:
        outcome.laws[found.broken.law] += 1
        place = f"{what.preset.name}, {found.fmt}, {found.length} messages in {found.budget:,} tokens"
        outcome.failures.append(f"law {found.broken.law} ({place}): {found.broken.said}")


def same(left: Json, right: Json) -> bool:
    """Return whether the values are equal as JSON: unlike in Python, 1 equals neither true nor 1.0."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


# --- reporting -----------------------------------------------------------------------------------


def report(outcomes: list[Outcome], others: list[str]) -> None:
    failures = list(chain.from_iterable(lines_of(outcome) for outcome in outcomes))
    for line in failures[:SHOWN_FAILURES]:
        print(line)
    if len(failures) > SHOWN_FAILURES:
        print(f"and {len(failures) - SHOWN_FAILURES:,} more")
    table = Table()
    table.add_column("file", no_wrap=True)
    columns = ("talks", "messages", "warnings", "objections", "views", "impossible", "failures", "laws")
    for column in columns:
        table.add_column(column, justify="right")
    for file in dict.fromkeys(outcome.file for outcome in outcomes):
        table.add_row(file, *row_of([outcome for outcome in outcomes if outcome.file == file]))
    table.add_section()
    table.add_row("all", *row_of(outcomes))
    console = Console()
    if not console.is_terminal:
        console.width = WIDTH_OF_A_FILE
    console.print(table)
    if others:
        console.print(f"{len(others)} files are no conversations", style="dim")


def row_of(outcomes: list[Outcome]) -> tuple[str, ...]:
    laws = sum((outcome.laws for outcome in outcomes), Tally())
    figures = (
        len(outcomes),
        sum(outcome.messages for outcome in outcomes),
        sum(outcome.warnings for outcome in outcomes),
        sum(outcome.before for outcome in outcomes),
        sum(outcome.views for outcome in outcomes),
        sum(outcome.impossible for outcome in outcomes),
        sum(len(outcome.failures) for outcome in outcomes),
    )
    broken = " ".join(f"{law}:{times}" for law, times in sorted(laws.items()))
    return (*(f"{figure:,}" for figure in figures), broken or "-")


def lines_of(outcome: Outcome) -> Iterable[str]:
    named = f"{outcome.file} {outcome.name}".strip()
    return (f"{named}: {failure}" for failure in outcome.failures)


def as_json(outcomes: list[Outcome], others: list[str]) -> Json:
    return {
        "conversations": len(outcomes),
        "messages": sum(outcome.messages for outcome in outcomes),
        "objections_before": sum(outcome.before for outcome in outcomes),
        "views": sum(outcome.views for outcome in outcomes),
        "impossible": sum(outcome.impossible for outcome in outcomes),
        "laws": {str(law): times for law, times in sorted(sum((each.laws for each in outcomes), Tally()).items())},
        "failures": list(chain.from_iterable(lines_of(outcome) for outcome in outcomes)),
        "other_files": list(others),
    }


if __name__ == "__main__":
    sys.exit(main())
