"""The tool `search_files`: find words or a pattern in the files of a workspace. No pattern can make it hang.

The search itself runs in a process of its own (`matcher`); here its findings become one text.
"""

from itertools import groupby
from typing import Annotated

import msgspec

from everlong.agent.definitions import Outcome, Place, Tool, tool
from everlong.agent.tools.isolation import run_isolated
from everlong.agent.tools.matcher import Ended, Finding, Looking, Match, Query
from everlong.agent.workspace import inside
from everlong.errors import InputError

__all__ = ["search_files", "search_tool"]

SECONDS = 20.0
MOST_MATCHES = 200
MOST_CONTEXT = 10
MOST_CHARACTERS = 60_000
PROGRAM = "everlong.agent.tools.matcher"


def search_tool(seconds: float) -> Tool:
    """Return the tool with a time limit for one search."""

    @tool
    async def search_files(
        pattern: Annotated[str, "a regular expression, with (?i) to ignore case; or literal text if regex is false"],
        place: Place,
        path: Annotated[str, "a folder or file, relative to the workspace"] = ".",
        glob: Annotated[str, "only files whose path matches, such as *.py or src/**/*.ts"] = "",
        regex: Annotated[bool, "whether the pattern is a regular expression"] = True,
        context: Annotated[int, "lines to show before and after each match"] = 0,
    ) -> Outcome:
        """Search for lines in text files. Caches, packages, version control and binary files are not searched."""
        if not pattern:
            raise InputError("pattern: must not be empty")
        inside(place, path)
        query = Query(
            workspace=str(place.workspace.absolute()),
            allowed=tuple(str(folder.absolute()) for folder in place.allowed),
            path=path,
            pattern=pattern,
            regex=regex,
            glob=glob.removeprefix("./"),
            context=max(0, min(context, MOST_CONTEXT)),
            most=MOST_MATCHES,
        )
        output, _ = await run_isolated(PROGRAM, msgspec.json.encode(query), seconds)
        return _outcome(output, seconds)

    return search_files


search_files = search_tool(SECONDS)


def _outcome(output: bytes, seconds: float) -> Outcome:
    decoder = msgspec.json.Decoder(Finding)
    whole, _, _ = output.rpartition(b"\n")  # without a line that was cut off at the time limit
    findings = [decoder.decode(line) for line in whole.split(b"\n") if line]
    ended = next((finding for finding in findings if isinstance(finding, Ended)), None)
    if ended and ended.problem:
        return Outcome(f"pattern: {ended.problem}", failed=True)
    matches = [finding for finding in findings if isinstance(finding, Match)]
    lines, shown = _listed(matches)
    notes = []
    if shown < len(matches):
        notes.append(f"only the first {shown} matches are shown; use a more specific pattern to see others")
    if ended is None:
        paths = (finding.path for finding in reversed(findings) if isinstance(finding, Looking))
        place = next(paths, "the first folder")
        notes.append(f"stopped after {seconds:g} seconds, in {place}: use a simpler pattern or a smaller folder")
    elif ended.enough:
        notes.append(f"stopped at {len(matches)} matches: there are more")
    if ended and ended.skipped:
        notes.append(f"{ended.skipped} files were too large to search")
    if not matches and ended:
        notes.insert(0, f"nothing found in {ended.files:,} files")
    return Outcome("\n".join([*lines, *(f"[{note}]" for note in notes)]), failed=ended is None and not matches)


def _listed(matches: list[Match]) -> tuple[list[str], int]:
    """Return the matches file by file, each line once, and how many of the matches fit."""
    lines: list[str] = []
    size = shown = 0
    for path, in_file in groupby(matches, key=lambda match: match.path):
        lines.append(f"{path}:")
        last = 0
        for match in in_file:
            if last and match.first > last + 1:
                lines.append("--")
            for number, line in enumerate(match.lines, match.first):
                if number > last:
                    lines.append(f"{number}{':' if number == match.line else '-'}{line}")
                    size += len(lines[-1])
                elif number == match.line:
                    at = len(lines) - 1 - (last - number)
                    lines[at] = f"{number}:{line}"
            last = max(last, match.first + len(match.lines) - 1)
            shown += 1
            if size > MOST_CHARACTERS:
                return lines, shown
    return lines, shown
