"""Questions about the assistant's words: they ask for one answer, and give nothing of it away."""

import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from everlong.errors import InputError
from everlong.lab.datasets.assistant_words import MOST_A_CHAT, ORDINALS, TEMPLATES, make_assistant_words
from everlong.lab.datasets.dialogue import Dataset, Dialogue, Turn
from everlong.lab.datasets.table import convert_dataset
from tests.lab.datasets.checkouts import advice, chats


def chat(*said: str, key: str = "chat") -> Dataset:
    """A chat in which user and assistant take turns."""
    turns = tuple(Turn(str(at), ("user", "assistant")[at % 2], text) for at, text in enumerate(said))
    return Dataset((Dialogue(key, turns),), ())


def words_of(text: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[\w'-]+", text)}


def test_a_question_names_the_topic_of_the_request_and_wants_the_answer(tmp_path: Path) -> None:
    chats(tmp_path)
    made = convert_dataset("assistant_words", tmp_path)
    assert [question.evidence for question in made.questions] == [("1",), ("3",), ("5",)]
    topics = ("wooden garden gate", "crooked kitchen tap", "steep attic stairs")
    for question, topic in zip(made.questions, topics, strict=True):
        assert topic in question.question
    assert [question.category for question in made.questions] == ["suggestion", "ordinal", "ordinal"]
    assert made.dialogues[0].half == "tuning"


GATE = advice("wooden garden gate", ("Hinge grease", "Oak wedges", "Cedar oil"))
PADDING = "It is worth looking at this calmly, since there is more than one way, and all of them take some time. " * 3

KINDS = {
    "code": (
        ("I need the tide table parser", f"A tide table: {PADDING}\n```python\ndef read_tides(path): ...\n```\n"),
        "tide table parser",
        "def read_tides(path): ...",
    ),
    "asked_back": (
        (
            "I need the tide table parser",
            f"For the tide table: {PADDING}\nShould it know the harbour of Husum as well?",
        ),
        "tide table parser",
        "Should it know the harbour of Husum as well?",
    ),
    "point": (
        ("I need the tide table parser", f"A tide table: {PADDING}\n- **Time zones**: keep everything in zulu.\n"),
        "Time zones",
        "keep everything in zulu.",
    ),
}
#: Turns in which the words of the label stand too, so that the label alone gives nothing away.
AROUND = ("Which time do the zones have?", "Time and zones are a long story.")


@pytest.mark.parametrize(("exchange", "named", "answer"), KINDS.values(), ids=KINDS)
def test_each_kind_asks_for_its_own_thing(
    exchange: tuple[str, str], named: str, answer: str, request: pytest.FixtureRequest
) -> None:
    made = make_assistant_words(chat(*AROUND, *exchange))
    (question,) = made.questions
    assert named in question.question
    assert question.answer == answer
    assert question.category in request.node.name
    assert question.evidence == ("3",)


NONE = {
    "an answer that is short": ("How about the wooden garden gate?", "Use **oak**."),
    "a request without a topic": ("Can you help me with it, please?", GATE[1]),
    "a topic that comes twice": (*GATE, GATE[0], "Again: see above."),
    "facts that another turn has": (*GATE, f"So {GATE[1]}", "Yes."),
    "two people who just talk": ("I like the sea.", "So do I, since I was small."),
}


@pytest.mark.parametrize("said", NONE.values(), ids=NONE)
def test_where_an_answer_is_not_alone_nothing_is_asked(said: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="no question can be made"):
        make_assistant_words(chat(*said))


def test_an_answer_longer_than_a_small_budget_is_not_asked_for() -> None:
    with pytest.raises(InputError, match="no question can be made"):
        make_assistant_words(chat(GATE[0], GATE[1] + "x" * 8_000))


def test_a_chat_that_gives_no_question_is_left_out() -> None:
    both = Dataset((*chat(*GATE, key="gate").dialogues, *chat("Hello.", "Hello!", key="small").dialogues), ())
    assert [dialogue.id for dialogue in make_assistant_words(both).dialogues] == ["gate"]


THINGS = st.sampled_from(
    [
        "gate",
        "tap",
        "stairs",
        "roof",
        "cellar",
        "window",
        "chimney",
        "fence",
        "floor",
        "lamp",
        "shed",
        "pump",
        "well",
        "oven",
        "sink",
    ]
)
ADJECTIVES = st.sampled_from(
    ["wooden", "leaking", "old", "crooked", "damp", "rusty", "loose", "noisy", "cracked", "cold"]
)
ITEMS = st.sampled_from(
    [
        "Grease",
        "Wedges",
        "Oil",
        "Washer",
        "Tape",
        "Felt",
        "Putty",
        "Wax",
        "Screws",
        "Glue",
        "Sand",
        "Primer",
        "Rope",
        "Clamps",
        "Resin",
    ]
)


@st.composite
def long_chats(draw: st.DrawFn) -> Dataset:
    said: list[str] = []
    for number in range(draw(st.integers(1, 14))):
        topic = f"{draw(ADJECTIVES)} {draw(ADJECTIVES)} {draw(THINGS)}"
        items = tuple(
            f"{draw(ITEMS)} {draw(st.sampled_from(['', f'no{number}', f'kind{number}']))}".strip() for _ in range(3)
        )
        said += advice(topic, (items[0], items[1], items[2]))
    return chat(*said)


@given(chats=long_chats())
def test_a_question_gives_nothing_away_and_wants_one_answer(chats: Dataset) -> None:
    try:
        made = make_assistant_words(chats)
    except InputError:
        return
    turns = {turn.id: turn for turn in chats.dialogues[0].turns}
    bags = {key: words_of(turn.content) for key, turn in turns.items()}
    assert 0 < len(made.questions) <= MOST_A_CHAT
    assert len({question.evidence for question in made.questions}) == len(made.questions)
    templates = words_of(" ".join([*ORDINALS, *(text for texts in TEMPLATES.values() for text in texts)]))
    for question in made.questions:
        (key,) = question.evidence
        assert turns[key].role == "assistant"
        own = {word for word in bags[key] if sum(word in bag for bag in bags.values()) == 1}
        assert not (words_of(question.question) - templates) & own
        asked_before = [int(other) for other, turn in turns.items() if turn.role == "user"]
        holding = [at for at in asked_before if words_of(question.question) - templates <= bags[str(at)] | bags[key]]
        assert int(key) - 1 in holding
    assert make_assistant_words(chats) == made
