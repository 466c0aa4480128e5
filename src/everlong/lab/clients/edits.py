"""A file that stays in the chat and is edited again and again, as in aider: the tasks and their scripted model.

Each task pastes a record that should be entered in the file; the model answers with a SEARCH/REPLACE block. The client
sends the file in its newest form with every request, and the script records each request without it.
"""

from dataclasses import dataclass, field
from pathlib import Path

from everlong.core import Role
from everlong.lab.clients.script import SUMMARY, Clerk, newest_task, record_line, summary_wanted
from everlong.llm import Answer, ReceivedRequest

__all__ = ["LEDGER", "Editor", "Edits"]

LEDGER = "ledger.txt"
BLOCK = """{said}

{name}
```
<<<<<<< SEARCH
{old}
=======
{new}
>>>>>>> REPLACE
```
"""


@dataclass(frozen=True, slots=True)
class Edits:
    """The tasks: their number, the lines of the file at first, and the lines that a user pastes; 20 tokens per line."""

    count: int = 36
    lines: int = 150
    pasted: int = 150

    def prompts(self) -> list[str]:
        """Return everything that the user says."""
        return [self.prompt(task) for task in range(1, self.count + 1)]

    def prompt(self, task: int) -> str:
        """Return what the user asks for: the task in one line, then the record."""
        record = (record_line(task, 2, row) for row in range(self.pasted))
        return "\n".join((f"Task {task}: enter the record below in {LEDGER}, in one line.", *record))

    def done(self, task: int) -> str:
        """Return what the model says with its edit."""
        return f"Task {task} is done, the record is entered."

    def entries(self, count: int) -> str:
        """Return the line that every edit changes."""
        return f"Entries so far: {count}"

    def write(self, folder: Path) -> None:
        """Write the file."""
        lines = [self.entries(0), *(record_line(0, 1, row) for row in range(self.lines))]
        (folder / LEDGER).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def script(self, folder: Path) -> Clerk:
        """Return the model that edits the file."""
        return Editor(self, folder)


@dataclass(slots=True)
class Editor:
    """The script: an edit for each task. `missing` names the requests without the current file."""

    edits: Edits
    folder: Path
    missing: list[str] = field(default_factory=list)

    def __call__(self, asked: ReceivedRequest) -> Answer:
        """Answer with the edit of the newest task."""
        task = newest_task(asked.messages)
        if task is None or summary_wanted(asked.messages):
            return Answer(text=SUMMARY)
        now = (self.folder / LEDGER).read_text(encoding="utf-8")
        if not any(message.role is Role.USER and now.strip() in message.text for message in asked.messages):
            self.missing.append(f"{LEDGER} of task {task}")
        first = now.partition("\n")[0]
        new = f"{self.edits.entries(task)}\n{record_line(task, 3, task)}"
        return Answer(text=BLOCK.format(said=self.edits.done(task), name=LEDGER, old=first, new=new))
