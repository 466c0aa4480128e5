"""The scripted model: it has the client read the files of each task in the client's own way, then says it is done.

Owns the tasks, their files and the script. A client's own way is its tool, or the code that it runs. The script also
records whether a result was really there when the model needed it, by the first line of the file; everything else about
a run is judged from the servers' records.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from everlong.core import Message, Role, Text
from everlong.llm import Answer, ReceivedRequest

__all__ = [
    "SUMMARY",
    "Clerk",
    "Reader",
    "Tasks",
    "Way",
    "Work",
    "newest_task",
    "record_line",
    "summary_wanted",
    "thought_for",
    "tool_fields",
    "tool_names",
    "way_of",
]

TASK = re.compile(r"\bTask (\d+):")
#: The words with which clients and gateways ask for a summary of a conversation.
SUMMARISE = re.compile(r"summari[sz]e the conversation|summary of the conversation", re.IGNORECASE)
#: The answer to anything that is not a step of a task: a summary, a title, a check of the key.
SUMMARY = json.dumps({"context": "A clerk reads the records of the harbour office, file by file, task by task."})
LINE_WORDS = ("harbour", "signal", "ledger", "window", "anchor", "copper", "meadow", "lantern")


class Clerk(Protocol):
    """A scripted model. `missing` names what was not there when the model needed it."""

    missing: list[str]

    def __call__(self, asked: ReceivedRequest, /) -> Answer:
        """Answer with the next step."""


class Work(Protocol):
    """The work of a client: the prompts of its user, the files it finds, and its model."""

    @property
    def count(self) -> int:
        """The number of tasks."""

    def prompts(self) -> list[str]:
        """Return everything that the user says, a prompt for each task."""

    def done(self, task: int) -> str:
        """Return what the model says at the end of a task."""

    def write(self, folder: Path) -> None:
        """Write the files into the folder where the client works."""

    def script(self, folder: Path) -> Clerk:
        """Return the model for one run in that folder."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks: their number, the files of each, and the lines of a file, about 20 tokens each."""

    count: int = 6
    files: int = 3
    lines: int = 100

    def prompt(self, task: int) -> str:
        """Return what the user asks for. Example: 2 -> "Task 2: read part-2-1.txt … and say when you are done." """
        names = ", ".join(self.name(task, at) for at in range(1, self.files + 1))
        return f"Task {task}: read {names}, one after the other, and say when you are done."

    def name(self, task: int, at: int) -> str:
        """Return the name of a file."""
        return f"part-{task}-{at}.txt"

    def opening(self, task: int, at: int) -> str:
        """Return the first line of a file, by which its result is recognised."""
        return f"Record {task}.{at} of the harbour office"

    def done(self, task: int) -> str:
        """Return what the model says at the end of a task."""
        return f"Task {task} is done, {self.files} files are read."

    def prompts(self) -> list[str]:
        """Return everything that the user says."""
        return [self.prompt(task) for task in range(1, self.count + 1)]

    def write(self, folder: Path) -> None:
        """Write the files of all tasks into a folder."""
        for task in range(1, self.count + 1):
            for at in range(1, self.files + 1):
                lines = [self.opening(task, at), *(record_line(task, at, row) for row in range(self.lines))]
                (folder / self.name(task, at)).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def script(self, folder: Path) -> Clerk:
        """Return the model that has the files read."""
        return Reader(self, folder)


def record_line(task: int, at: int, row: int) -> str:
    """Return one line. No two are the same; otherwise they would be folded into one."""
    first, second = LINE_WORDS[row % 8], LINE_WORDS[(row // 8 + at) % 8]
    return (
        f"{row:04d} the {first} of the {second} was entered as {task * 7_919 + at * 613 + row * 37} by clerk {row % 13}"
    )


@dataclass(slots=True)
class Reader:
    """The script: for each task, one file after the other, then the closing words. `folder` is the client's folder.

    `missing` names the results that were absent when the model had to continue.
    """

    tasks: Tasks
    folder: Path
    made: Counter[int] = field(default_factory=Counter)
    missing: list[str] = field(default_factory=list)

    def __call__(self, asked: ReceivedRequest) -> Answer:
        """Answer with the next step of the task."""
        task, way = newest_task(asked.messages), way_of(asked)
        if way is None or task is None or summary_wanted(asked.messages):
            return Answer(text=SUMMARY, thinking=thought_for(asked))
        at = self.made[task]
        if at and at <= self.tasks.files and not way.holds(asked.messages, self.tasks.opening(task, at)):
            self.missing.append(self.tasks.name(task, at))
        self.made[task] += 1
        if at >= self.tasks.files:
            return replace(way.end(self.tasks.done(task)), thinking=thought_for(asked))
        return replace(way.read(self.folder / self.tasks.name(task, at + 1)), thinking=thought_for(asked))


# --- the ways of clients ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Way:
    """How a client reads a file and ends its task, and whether a request contains a file that it has read."""

    read: Callable[[Path], Answer]
    end: Callable[[str], Answer]
    holds: Callable[[Sequence[Message], str], bool]


def way_of(asked: ReceivedRequest) -> Way | None:
    """Return the way of the client behind a request; None if it cannot read a file now."""
    tools = tool_fields(asked.tools)
    for name, properties in tools.items():
        arguments = _arguments(name, properties)
        if arguments is not None:
            return _tool_way(name, arguments, tools)
        if properties.keys() >= STEP_FIELDS:
            return _step_way(name)
    system = "".join(message.text for message in asked.messages if message.role is Role.SYSTEM)
    return CODE_WAY if CODE_TOOL in system else None


def _tool_way(name: str, arguments: Callable[[Path], dict[str, object]], tools: Mapping[str, Mapping[str, Any]]) -> Way:
    return Way(
        lambda path: Answer(text=f"Reading {path.name}.", calls=((name, json.dumps(arguments(path))),)),
        _end(tools),
        _in_user_text if RESULTS_SAID in tools else _in_results,
    )


def _end(tools: Mapping[str, Mapping[str, Any]]) -> Callable[[str], Answer]:
    """Return how a task is ended: with text, or with the tool for the final text."""
    submit = next((name for name in SUBMITS if tools.get(name)), None)
    if submit is None:
        return lambda words: Answer(text=words)
    field = next(iter(tools[submit]))
    return lambda words: Answer(text="All of it is read.", calls=((submit, json.dumps({field: words})),))


def _step_way(name: str) -> Way:
    """Return the way of a client whose answers are all objects, written as tool calls."""
    return Way(
        lambda path: Answer(calls=((name, json.dumps({"path": str(path), "said": ""})),)),
        lambda words: Answer(calls=((name, json.dumps({"path": "", "said": words})),)),
        _in_results,
    )


def _functions(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the parameters of each function that a tool declares, in any format."""
    function = schema.get("function")
    tool = function if isinstance(function, dict) else schema
    for each in tool.get("functionDeclarations") or [tool]:
        parameters: dict[str, Any] = next((each[name] for name in PARAMETERS if each.get(name)), {})
        yield str(each.get("name", "")), parameters.get("properties") or {}


def _arguments(name: str, properties: Mapping[str, Any]) -> Callable[[Path], dict[str, object]] | None:
    """Return how a tool with this name is called to show a file; None if it is not such a tool."""
    if name.rpartition("-")[2] in READERS:  # Semantic Kernel prefixes it with the name of a plug-in
        field = next((known for known in PATH_FIELDS if known in properties), PATH_FIELDS[0])
        return lambda path: {field: str(path)}
    return SHELLS.get(name)


PARAMETERS = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema")
#: Clients' own tools that show a file, and their names for the path.
READERS = frozenset({"read_file", "Read", "read"})
PATH_FIELDS = ("path", "file_path", "filePath")
#: Tools of clients that show a file with a command.
SHELLS: Mapping[str, Callable[[Path], dict[str, object]]] = {
    "exec_command": lambda path: {"cmd": f"cat {path}"},
    "shell_command": lambda path: {"command": f"cat {path}"},
    "shell": lambda path: {"command": ["cat", str(path)]},
}
#: smolagents' tool for the final text; it sends the results of other tools as user text.
RESULTS_SAID = "final_answer"
#: Tools of clients that take the final text of a task as a call.
SUBMITS = ("submit", RESULTS_SAID)
#: The fields in the answers of a client without tools: the file to read next, or the final text.
STEP_FIELDS = frozenset({"path", "said"})
#: How the system text of a client that runs code shows its tool.
CODE_TOOL = "def read_file("


def _code(thought: str, line: str) -> Answer:
    return Answer(text=f"Thought: {thought}\n<code>\n{line}\n</code>")


def _in_results(messages: Iterable[Message], opening: str) -> bool:
    """Return whether a result with that first line is there."""
    results = (result for message in messages for result in message.results)
    return any(opening in part.text for result in results for part in result.content if isinstance(part, Text))


def _in_user_text(messages: Iterable[Message], opening: str) -> bool:
    """The same for a client whose results are user text."""
    return any(message.role is Role.USER and opening in message.text for message in messages)


#: The way of clients that run code; their results are user text.
CODE_WAY = Way(
    lambda path: _code(f"I read {path.name}.", f"print(read_file({str(path)!r}))"),
    lambda words: _code("All of it is read.", f"final_answer({words!r})"),
    _in_user_text,
)


def tool_fields(tools: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the fields of the offered tools, by name, in any format."""
    return dict(function for text in tools for function in _functions(json.loads(text)))


def tool_names(tools: Iterable[str]) -> list[str]:
    """Return the names of the offered tools, in any format. Example: ('{"function":{"name":"f"}}',) -> ["f"]"""
    return list(tool_fields(tools))


def thought_for(asked: ReceivedRequest) -> str:
    """Return some thinking if the client asks for it, because a turn must then begin with it."""
    wanted = json.loads(asked.body or "{}").get("thinking")
    return "The files have an order." if isinstance(wanted, dict) and wanted.get("type") != "disabled" else ""


def summary_wanted(messages: Sequence[Message]) -> bool:
    """Return whether the last message asks for a summary."""
    return bool(messages) and SUMMARISE.search(messages[-1].text) is not None


def newest_task(messages: Iterable[Message]) -> int | None:
    """Return the number of the newest task, which is the highest; None if there is none."""
    texts = (message.text for message in messages if message.role in (Role.USER, Role.TOOL))
    return max((int(number) for text in texts for number in TASK.findall(text)), default=None)
