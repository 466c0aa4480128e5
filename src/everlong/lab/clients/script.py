"""The scripted model: it has the client read the files of each task with the client's own tool, then says it is done.

Owns the tasks, their files and the script. The script also notes whether a result was really there when the model
needed it, by the first line of the file; everything else about a run is judged from the records of the servers.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from everlong.core import Message, Role, Text
from everlong.llm import Answer, ReceivedRequest

__all__ = ["Reader", "Tasks", "summary_wanted", "tool_names"]

TASK = re.compile(r"\bTask (\d+):")
#: How clients and gateways ask for a summary of a conversation.
SUMMARISE = re.compile(r"summari[sz]e the conversation|summary of the conversation", re.IGNORECASE)
#: The answer to whatever is no step of a task: a summary, a title, a check of the key.
SUMMARY = json.dumps({"context": "A clerk reads the records of the harbour office, file by file, task by task."})
LINE_WORDS = ("harbour", "signal", "ledger", "window", "anchor", "copper", "meadow", "lantern")


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
                lines = [self.opening(task, at), *(_line(task, at, row) for row in range(self.lines))]
                (folder / self.name(task, at)).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _line(task: int, at: int, row: int) -> str:
    """Return one line. No two are the same, or they would be folded into one."""
    first, second = LINE_WORDS[row % 8], LINE_WORDS[(row // 8 + at) % 8]
    return (
        f"{row:04d} the {first} of the {second} was entered as {task * 7_919 + at * 613 + row * 37} by clerk {row % 13}"
    )


@dataclass(slots=True)
class Reader:
    """The script: for each task, one file after the other, then the closing words. `folder` is where the client works.

    `missing` names the results that were not there when the model had to go on.
    """

    tasks: Tasks
    folder: Path
    made: Counter[int] = field(default_factory=Counter)
    missing: list[str] = field(default_factory=list)

    def __call__(self, asked: ReceivedRequest) -> Answer:
        """Answer with the next step of the task."""
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


#: The arguments with which each client's own tool shows a file. The first tool on offer is used.
ARGUMENTS: Mapping[str, Callable[[Path], dict[str, object]]] = {
    "read_file": lambda path: {"path": str(path)},
    "Read": lambda path: {"file_path": str(path)},
    "exec_command": lambda path: {"cmd": f"cat {path}"},
    "shell_command": lambda path: {"command": f"cat {path}"},
    "shell": lambda path: {"command": ["cat", str(path)]},
}


def tool_names(tools: Iterable[str]) -> list[str]:
    """Return the names of the tools on offer, in any format. Example: ('{"function":{"name":"f"}}',) -> ["f"]"""
    names = []
    for text in tools:
        tool = json.loads(text)
        function = tool.get("function")
        names.append(str((function if isinstance(function, dict) else tool).get("name", "")))
    return names


def _thought(asked: ReceivedRequest) -> str:
    """Return some thinking if the client asks for it, because a turn must then begin with it."""
    wanted = json.loads(asked.body or "{}").get("thinking")
    return "The files have an order." if isinstance(wanted, dict) and wanted.get("type") != "disabled" else ""


def summary_wanted(messages: Sequence[Message]) -> bool:
    """Return whether the last message asks for a summary."""
    return bool(messages) and SUMMARISE.search(messages[-1].text) is not None


def _task(messages: Iterable[Message]) -> int | None:
    """Return the number of the newest task, which is the highest; None if there is none."""
    texts = (message.text for message in messages if message.role in (Role.USER, Role.TOOL))
    return max((int(number) for text in texts for number in TASK.findall(text)), default=None)


def _holds(messages: Iterable[Message], opening: str) -> bool:
    """Return whether a result with that first line is there."""
    results = (result for message in messages for result in message.results)
    return any(opening in part.text for result in results for part in result.content if isinstance(part, Text))
