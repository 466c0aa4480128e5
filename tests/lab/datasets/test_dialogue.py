"""A data set of one's own: taken as it is, and what is wrong with it is told in one line."""

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from everlong.errors import InputError
from everlong.lab.datasets.dialogue import Dataset, Dialogue, Question, Turn, flat_ids, read_dataset, write_dataset
from everlong.lab.measures.dialogs import question_cases
from tests.cli.running import everlong
from tests.lab.folders import DATA

TALK = {"id": "t", "messages": [{"id": "1", "role": "user", "content": "hello"}]}
ASKED = {"conversation": "t", "question": "What was said?", "evidence": ["1"]}

WRONG = {
    "no id of a turn": (TALK | {"messages": [{"role": "user", "content": "x"}]}, ASKED, r"t: 'id' is missing"),
    "a role that is none": (
        TALK | {"messages": [{"id": "1", "role": "friend", "content": "x"}]},
        ASKED,
        r"the role of turn 1 must be user or assistant, not 'friend'",
    ),
    "content that is no text": (TALK | {"messages": [{"id": "1", "role": "user", "content": 3}]}, ASKED, r"not 3"),
    "messages that are no list": (TALK | {"messages": 3}, ASKED, r"t: messages cannot be read"),
    "no messages": (TALK | {"messages": []}, ASKED, r"t: no messages"),
    "a turn twice": (TALK | {"messages": TALK["messages"] * 2}, ASKED, r"two turns have the id 1"),  # type: ignore[operator]
    "a half that is none": (TALK | {"half": "third"}, ASKED, r"the half of t is tuning or confirming, not 'third'"),
    "no conversation": (TALK, ASKED | {"conversation": "u"}, r"question u-q0000: there is no conversation 'u'"),
    "no turn": (TALK, ASKED | {"evidence": ["2"]}, r"question t-q0000: t has no turn '2', which is its evidence"),
    "no question": (TALK, ASKED | {"question": " "}, r"the text of the question is empty"),
    "before a turn that is none": (TALK, ASKED | {"before": "9"}, r"t has no turn '9', named in before"),
    "evidence that comes later": (TALK, ASKED | {"before": "1"}, r"its evidence does not come before turn '1'"),
    "no evidence field": (TALK, {"conversation": "t", "question": "?"}, r"question t-q0000: 'evidence' is missing"),
}


def save(folder: Path, talk: object, asked: object) -> None:
    (folder / "conversations.jsonl").write_text(json.dumps(talk))
    (folder / "questions.jsonl").write_text(json.dumps(asked))


@pytest.mark.parametrize(("talk", "asked", "told"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named(talk: object, asked: object, told: str, tmp_path: Path) -> None:
    save(tmp_path, talk, asked)
    with pytest.raises(InputError, match=told) as error:
        read_dataset(tmp_path)
    assert "\n" not in str(error.value)


def test_the_same_id_twice_is_named() -> None:
    talk = Dialogue("t", (Turn("1", "user", "x"),))
    with pytest.raises(InputError, match="two conversations have the id t"):
        Dataset((talk, talk), ())
    asked = Question("q", "t", "?", ("1",))
    with pytest.raises(InputError, match="two questions have the id q"):
        Dataset((talk,), (asked, asked))


def test_a_set_of_ones_own_is_measured_as_before_after_its_conversion(tmp_path: Path) -> None:
    ran = everlong("lab", "fetch-data", "my-harbour", "--from", str(DATA / "harbour"), "--data", str(tmp_path))
    assert ran.code == 0, ran.err
    own, given = question_cases(tmp_path, "my_harbour"), question_cases(DATA, "harbour")
    assert [group.cases for group in own] == [group.cases for group in given]
    assert [group.conversation.messages for group in own] == [group.conversation.messages for group in given]


def test_a_question_without_evidence_is_left_out(tmp_path: Path) -> None:
    save(tmp_path, TALK, ASKED | {"evidence": []})
    assert not read_dataset(tmp_path).questions


def test_a_question_that_names_a_turn_is_asked_before_it(tmp_path: Path) -> None:
    (tmp_path / "talk").mkdir()
    turns = [{"id": str(at), "role": "user", "content": f"turn {at}"} for at in range(4)]
    save(tmp_path / "talk", TALK | {"messages": turns}, ASKED | {"before": "2"})
    write_dataset(read_dataset(tmp_path / "talk"), tmp_path / "talk")
    (group,) = question_cases(tmp_path, "talk")
    assert [(case.at, case.wanted) for case in group.cases] == [(2, ("turn 1",))]


def test_a_packed_file_of_an_earlier_time_does_not_stay(tmp_path: Path) -> None:
    save(tmp_path, TALK, ASKED)
    (tmp_path / "questions.jsonl.gz").write_bytes(b"old")
    write_dataset(read_dataset(tmp_path), tmp_path)
    assert not (tmp_path / "questions.jsonl.gz").exists()


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ([3, 8, 3], ("3", "8")),
        ({"first": [58], "second": [[24], 58]}, ("58", "24")),
        (None, ()),
        ([], ()),
        (7, ("7",)),
    ],
)
def test_ids_are_found_in_lists_and_objects(value: object, found: tuple[str, ...]) -> None:
    assert flat_ids(value) == found


words = st.text(min_size=1, max_size=12).filter(str.strip)


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    dialogues = []
    for number in range(draw(st.integers(1, 3))):
        said = draw(
            st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(), words), min_size=1, max_size=5)
        )
        turns = tuple(Turn(f"{at}", role, text, name) for at, (role, text, name) in enumerate(said))
        dialogues.append(Dialogue(f"d{number}", turns, draw(st.sampled_from(["", "tuning", "confirming"]))))
    questions = []
    for number in range(draw(st.integers(0, 4))):
        talk = draw(st.sampled_from(dialogues))
        evidence = draw(st.lists(st.sampled_from([turn.id for turn in talk.turns]), min_size=1, unique=True))
        questions.append(Question(f"q{number}", talk.id, draw(words), tuple(evidence), draw(words), draw(st.text())))
    return Dataset(tuple(dialogues), tuple(questions))


@given(dataset=datasets())
def test_what_is_written_is_read_back(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("set")
    write_dataset(dataset, folder)
    assert read_dataset(folder) == dataset
    assert dataset.questions_in("tuning") + dataset.questions_in("confirming") == len(dataset.questions)
