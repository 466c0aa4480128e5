"""The model that a client talks to: it reads the files of each task with the client's own tool, then says it is done.

Owns the tasks, their files and the script. Whether a result was really there when the model looked for it is noted
here, by the first line of the file; everything else about a run is judged from the records of the servers.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from everlong.core import Message, Role, Text
from everlong.llm import Answer, Asked

__all__ = ["Reader", "Tasks", "summary_wanted", "tool_names"]

TASK = re.compile(r"\bTask (\d+):")
#: How clients and gateways ask for a summary of what was said.
SUMMARISE = re.compile(r"summari[sz]e the conversation|summary of the conversation", re.IGNORECASE)
#: The answer to whatever is no step of a task: a summary, a title, a look whether the key is good.
SUMMARY = json.dumps({"context": "A clerk reads the records of the harbour office, file by file, task by task."})
LINE_WORDS = ("harbour", "signal", "ledger", "window", "anchor", "copper", "meadow", "lantern")


@dataclass(frozen=True, slots=True)
class Tasks:
    """So many tasks, each with so many files of so many lines; a line is about 20 tokens."""

    count: int = 6
    files: int = 3
    lines: int = 100

    def prompt(self, task: int) -> str:
        """What the user asks for. Example: 2 -> "Task 2: read part-2-1.txt … and say when you are done." """
        names = ", ".join(self.name(task, at) for at in range(1, self.files + 1))
        return f"Task {task}: read {names}, one after the other, and say when you are done."

    def name(self, task: int, at: int) -> str:
        """The name of a file."""
        return f"part-{task}-{at}.txt"

    def opening(self, task: int, at: int) -> str:
        """The first line of a file: by it a result is known."""
        return f"Record {task}.{at} of the harbour office"

    def done(self, task: int) -> str:
        """What the model says at the end of a task."""
        return f"Task {task} is done, {self.files} files are read."

    def prompts(self) -> list[str]:
        """The whole conversation, from the user's side."""
        return [self.prompt(task) for task in range(1, self.count + 1)]

    def write(self, folder: Path) -> None:
        """Put the files there."""
        for task in range(1, self.count + 1):
            for at in range(1, self.files + 1):
                lines = [self.opening(task, at), *(_line(task, at, row) for row in range(self.lines))]
                (folder / self.name(task, at)).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _line(task: int, at: int, row: int) -> str:
    """No two lines are the same, or they would be folded into one."""
    first, second = LINE_WORDS[row % 8], LINE_WORDS[(row // 8 + at) % 8]
    return (
        f"{row:04d} the {first} of the {second} was entered as {task * 7_919 + at * 613 + row * 37} by clerk {row % 13}"
    )


@dataclass(slots=True)
class Reader:
    """A script: for each task one file after the other, then the last word. `folder` is where the client works.

    `missing` names the results that were not there when the model was asked to go on.
    """

    tasks: Tasks
    folder: Path
    made: Counter[int] = field(default_factory=Counter)
    missing: list[str] = field(default_factory=list)

    def __call__(self, asked: Asked) -> Answer:
        """One step of the work."""
        tool = next((name for name in tool_names(asked.tools) if name in ARGUMENTS), None)
        task = _task(asked.messages)
        if tool is None or task is None or summary_wanted(asked.messages):
            return Answer(text=SUMMARY, thinking=_thought(asked))
        at = self.made[task]
        if at and at <= self.tasks.files and not _holds(asked.messages, self.tasks.opening(task, at)):
            self.missing.append(self.tasks.name(task, at))
        self.made[task] += 1
        if at >= self.tasks.files:
            return Answer(text=self.tasks.done(task), thinking=_thought(asked))
        path = self.folder / self.tasks.name(task, at + 1)
        call = (tool, json.dumps(ARGUMENTS[tool](path)))
        return Answer(text=f"Reading {path.name}.", thinking=_thought(asked), calls=(call,))


#: How each client's own tool is told to show a file. The first that is offered is used.
ARGUMENTS: Mapping[str, Callable[[Path], dict[str, object]]] = {
    "read_file": lambda path: {"path": str(path)},
    "Read": lambda path: {"file_path": str(path)},
    "exec_command": lambda path: {"cmd": f"cat {path}"},
    "shell_command": lambda path: {"command": f"cat {path}"},
    "shell": lambda path: {"command": ["cat", str(path)]},
}


def tool_names(tools: Iterable[str]) -> list[str]:
    """The names of the tools on offer, whatever the format. Example: ('{"function":{"name":"f"}}',) -> ["f"]"""
    names = []
    for text in tools:
        tool = json.loads(text)
        function = tool.get("function")
        names.append(str((function if isinstance(function, dict) else tool).get("name", "")))
    return names


def _thought(asked: Asked) -> str:
    """Where a client asks for thinking it gets some: a turn must begin with it then."""
    wanted = json.loads(asked.body or "{}").get("thinking")
    return "The files have an order." if isinstance(wanted, dict) and wanted.get("type") != "disabled" else ""


def summary_wanted(messages: Sequence[Message]) -> bool:
    """Whether the last message asks for one."""
    return bool(messages) and SUMMARISE.search(messages[-1].text) is not None


def _task(messages: Iterable[Message]) -> int | None:
    """The newest task there is: its number is the highest."""
    said = (message.text for message in messages if message.role in (Role.USER, Role.TOOL))
    return max((int(number) for text in said for number in TASK.findall(text)), default=None)


def _holds(messages: Iterable[Message], opening: str) -> bool:
    """Whether a result with that line is there."""
    results = (result for message in messages for result in message.results)
    return any(opening in part.text for result in results for part in result.content if isinstance(part, Text))
