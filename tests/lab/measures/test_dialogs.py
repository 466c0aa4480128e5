"""Dialogues: which questions are cases, and questions that cannot be read."""

import json
from pathlib import Path

import pytest

from everlong.core import Role
from everlong.errors import InputError
from everlong.lab.measures.dialogs import question_cases
from tests.lab.folders import DATA


def test_questions_without_evidence_are_no_cases() -> None:
    (found,) = question_cases(DATA, "harbour")
    assert len(found.cases) == 3
    assert found.cases[1].wanted == tuple(found.conversation.messages[at].text for at in (2, 4))
    assert found.cases[0].question is not None
    assert found.cases[0].question.role is Role.USER


@pytest.mark.parametrize("field", [{"evidence": 7}, {"evidence": ["9"]}, {"evidence": [[]]}, {"conversation": "z"}])
def test_odd_questions_are_one_clear_line(tmp_path: Path, field: dict[str, object]) -> None:
    (tmp_path / "odd").mkdir()
    turns = [{"id": "1", "role": "user", "content": "x"}]
    (tmp_path / "odd" / "conversations.jsonl").write_text(json.dumps({"id": "a", "messages": turns}))
    asked = {"id": "q", "conversation": "a", "question": "x?", "evidence": ["1"]} | field
    (tmp_path / "odd" / "questions.jsonl").write_text(json.dumps(asked))
    with pytest.raises(InputError, match=r"questions\.jsonl: q "):
        question_cases(tmp_path, "odd")
