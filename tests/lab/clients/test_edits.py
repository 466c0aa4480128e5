"""The model that edits a file in the chat: its answers are edits, and it notes when the file is not there."""

from pathlib import Path

import pytest

from everlong.core import Message, Role, Text
from everlong.lab.clients.edits import LEDGER, Editor, Edits
from everlong.llm import ReceivedRequest

EDITS = Edits(count=2, lines=4, pasted=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    EDITS.write(tmp_path)
    return tmp_path


def asks(*texts: str) -> ReceivedRequest:
    said = tuple(Message(Role.USER, (Text(text),)) for text in texts)
    return ReceivedRequest(number=0, model="scripted", messages=said)


def shown(folder: Path) -> str:
    return f"These files are in the chat:\n\n{LEDGER}\n```\n{(folder / LEDGER).read_text(encoding='utf-8')}```"


def apply(answer: str, folder: Path) -> None:
    """Edit the file as a client would."""
    old, _, new = answer.partition("<<<<<<< SEARCH\n")[2].partition("\n>>>>>>> REPLACE")[0].partition("\n=======\n")
    file = folder / LEDGER
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1
    file.write_text(text.replace(old, new), encoding="utf-8")


def test_each_task_is_an_edit_of_the_file_as_it_is_then(folder: Path) -> None:
    editor = Editor(EDITS, folder)
    for task, prompt in enumerate(EDITS.prompts(), 1):
        answer = editor(asks(shown(folder), prompt)).text
        assert answer.startswith(EDITS.done(task))
        apply(answer, folder)
        assert (folder / LEDGER).read_text(encoding="utf-8").startswith(EDITS.entries(task))
    assert editor.missing == []


def test_a_file_that_is_gone_or_old_is_noted(folder: Path) -> None:
    editor, old = Editor(EDITS, folder), shown(folder)
    answer = editor(asks(EDITS.prompt(1)))
    apply(answer.text, folder)
    editor(asks(old, EDITS.prompt(2)))
    assert editor.missing == [f"{LEDGER} of task 1", f"{LEDGER} of task 2"]


@pytest.mark.parametrize("text", ["Give it a title.", f"{EDITS.prompt(1)} Summarise the conversation."])
def test_what_is_no_task_is_answered_in_words(text: str, folder: Path) -> None:
    editor = Editor(EDITS, folder)
    assert "SEARCH" not in editor(asks(text)).text
    assert editor.missing == []
