"""The errand: files of three times the window to read, and at the end questions about the beginning.

Some facts and rules are in the user's first message, some in the first files. When they are asked for, the scripted
model checks whether they are in its request; for missing ones it uses the recall tool, if there is one. Asked for a
summary, it is an ideal author: it repeats every fact that it sees.
"""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from everlong.core import Message, Text
from everlong.lab.clients.script import (
    Tasks,
    Way,
    newest_task,
    record_line,
    summary_wanted,
    thought_for,
    tool_fields,
    way_of,
)
from everlong.llm import Answer, ReceivedRequest

__all__ = ["RECALL", "Errand", "ErrandClerk", "Fact", "said_in"]

#: The name of the recall tool in adapters.
RECALL = "recall"


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence that must be known at the end, the word by which it is recognised, and how it is asked for."""

    sentence: str
    word: str
    question: str


#: Facts in the user's first message.
USER_FACTS = (
    Fact("The berth of the Marigold is K-47.", "K-47", "the berth of the Marigold"),
    Fact("Never enter a ship under the seal XR-9120.", "XR-9120", "the seal under which no ship may be entered"),
    Fact("Dates are written in the manner of Ostrava-3.", "Ostrava-3", "the manner in which dates are written"),
)
#: Facts in the middle of the first two files.
READ = (
    Fact("The harbour master of that night was Ilse Vandermolen.", "Vandermolen", "the harbour master of that night"),
    Fact("The strongbox opens with the number 77-413-20.", "77-413-20", "the number that opens the strongbox"),
)
SUMMARY = "A clerk reads the records of the harbour office, file by file, task by task."


@dataclass(frozen=True, slots=True)
class Errand:
    """Tasks with this many files each, then the questions: as a last prompt, or in the same one if `single`.

    The model reads `together` files at once, if its client can.
    """

    tasks: Tasks = field(default_factory=lambda: Tasks(count=6, files=9, lines=50))
    together: int = 2
    single: bool = False

    @property
    def count(self) -> int:
        """The number of prompts."""
        return self.tasks.count + (not self.single)

    @property
    def user_facts(self) -> tuple[Fact, ...]:
        """What the user says at the beginning."""
        return USER_FACTS

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Everything that is asked for at the end."""
        return (*USER_FACTS, *READ)

    def prompts(self) -> list[str]:
        """Return everything that the user says."""
        rules = " ".join(fact.sentence for fact in USER_FACTS)
        first, *others = map(self.request, range(1, self.count + 1))
        return [f"{first} Keep in mind for all tasks: {rules}", *others]

    def request(self, task: int) -> str:
        """Return what the user asks for in a task, without the facts to remember."""
        asked = f"say from memory, without reading a file again: {'; '.join(fact.question for fact in self.facts)}."
        if task > self.tasks.count:
            return f"Task {task}: {asked}"
        last = self.single and task == self.tasks.count
        return self.tasks.prompt(task) + (f" At the end {asked}" if last else "")

    def done(self, task: int) -> str:
        """Return what the model says at the end of a task."""
        return f"Task {task} is done, all of it is said." if task > self.tasks.count else self.tasks.done(task)

    def write(self, folder: Path) -> None:
        """Write the files, with the facts in the middle of the first ones."""
        self.tasks.write(folder)
        for at, fact in enumerate(READ, 1):
            path = folder / self.tasks.name(1, at)
            lines = path.read_text(encoding="utf-8").splitlines()
            middle = len(lines) // 2
            lines[middle] = f"{record_line(1, at, middle - 1)}. {fact.sentence}"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def script(self, folder: Path) -> "ErrandClerk":
        """Return the model for one run in that folder."""
        return ErrandClerk(self, folder)


@dataclass(slots=True)
class ErrandClerk:
    """The scripted model.

    `missing` names results that were absent when it had to continue. `kept` are the facts in the last request, None if
    the run did not get that far; `asked_for` are those that it had to recall.
    """

    errand: Errand
    folder: Path
    made: Counter[int] = field(default_factory=Counter)
    #: The files that were requested last, by their first lines.
    waiting: tuple[tuple[str, str], ...] = ()
    missing: list[str] = field(default_factory=list)
    kept: tuple[Fact, ...] | None = None
    asked_for: tuple[Fact, ...] = ()

    def __call__(self, asked: ReceivedRequest) -> Answer:
        """Answer with the next step."""
        task, way = newest_task(asked.messages), way_of(asked)
        if way is None or task is None or summary_wanted(asked.messages):
            words = [SUMMARY, *(fact.sentence for fact in self._facts_in(asked.messages))]
            if task is not None:
                words.append(f"The user asked last: {self.errand.request(task)}")
            return Answer(text=" ".join(words), thinking=thought_for(asked))
        self.missing += [name for name, opening in self.waiting if not way.holds(asked.messages, opening)]
        self.waiting = ()
        return replace(self._step(asked, task, way), thinking=thought_for(asked))

    def _step(self, asked: ReceivedRequest, task: int, way: Way) -> Answer:
        tasks = self.errand.tasks
        read = self.made[task]
        if task <= tasks.count and read < tasks.files:
            return self._read(task, range(read + 1, min(read + self.errand.together, tasks.files) + 1), way)
        if task < self.errand.count:
            return way.end(self.errand.done(task))
        facts = self._facts_in(asked.messages)
        lost = tuple(fact for fact in self.errand.facts if fact not in facts)
        tool = tool_fields(asked.tools).get(RECALL)
        if lost and tool and not self.asked_for:
            self.asked_for = lost
            name = next(iter(tool))
            return Answer(calls=tuple((RECALL, json.dumps({name: fact.question})) for fact in lost))
        self.kept = facts
        return way.end(self.errand.done(task))

    def _read(self, task: int, files: Iterable[int], way: Way) -> Answer:
        """Return the calls for several files at once; only one file if code reads them."""
        tasks, numbers = self.errand.tasks, list(files)
        answers = [way.read(self.folder / tasks.name(task, at)) for at in numbers]
        if not all(answer.calls for answer in answers):
            answers, numbers = answers[:1], numbers[:1]
        self.made[task] += len(numbers)
        self.waiting = tuple((tasks.name(task, at), tasks.opening(task, at)) for at in numbers)
        return replace(answers[0], calls=tuple(call for answer in answers for call in answer.calls))

    def _facts_in(self, messages: Iterable[Message]) -> tuple[Fact, ...]:
        text = said_in(messages)
        return tuple(fact for fact in self.errand.facts if fact.word in text)


def said_in(messages: Iterable[Message]) -> str:
    """Return all text of messages, including results."""
    texts: list[str] = []
    for message in messages:
        texts.append(message.text)
        for result in message.results:
            texts += [part.text for part in result.content if isinstance(part, Text)]
    return "\n".join(texts)
