"""What is needed of a talk: what was said about it, near it, by whom and when it is asked about."""

from datetime import UTC, datetime

import pytest

from everlong.core import Message, Role, Text
from everlong.relevance.index import Index
from everlong.relevance.ranking import ranked
from everlong.relevance.sessions import MOST_TURNS, Sessions
from everlong.relevance.talk.questions import session_named
from everlong.relevance.talk.worth import are_notes
from tests.core.build import assistant, system, user

MORNING, EVENING, NEXT_WEEK = datetime(2023, 5, 4, 9), datetime(2023, 5, 4, 20), datetime(2023, 5, 11, 9)


def said(name: str, text: str, time: datetime | None = None) -> Message:
    role = Role.ASSISTANT if name == "Ben" else Role.USER
    return Message(role, (Text(text),), name, time)


TALK = (
    said("Ann", "Good morning! Anything new at your place?", MORNING),
    said("Ben", "We adopted a puppy from the shelter.", MORNING),
    said("Ann", "What is it called?", MORNING),
    said("Ben", "Biscuit, because of the colour.", MORNING),
    said("Ann", "My sister plays the violin in a quartet.", EVENING),
    said("Ben", "I gave up the violin at school.", EVENING),
    said("Ann", "The roof of the shed leaks again.", NEXT_WEEK),
    said("Ben", "Then the ladder has to come out of storage.", NEXT_WEEK),
    said("Ann", "I found a carpenter who can mend it on Friday.", NEXT_WEEK),
)


def order(history: tuple[Message, ...], question: str) -> list[str]:
    """The texts of a talk, most needed for the question first."""
    index = Index()
    index.extend(history)
    return [index.chunks[number].text for number in ranked(index, (*history, user(question))).numbers]


ASKED = {
    "an answer stands after its question": ("What is the puppy called?", "Biscuit"),
    "the day that is named": ("What came up on May 11th?", "I found a carpenter"),
    "the session that is named": ("What came up in our last conversation?", "I found a carpenter"),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_for_comes_first(name: str) -> None:
    question, begins = ASKED[name]
    found = order(TALK, question)
    assert any(text.startswith(begins) for text in found[:3])


HEARD = {
    "the one who is named": ("Who in Ann's family plays the violin?", "My sister"),
    "the other": ("What did Ben say about the violin?", "I gave up"),
    "I am the user": ("What did I tell about the violin?", "My sister"),
    "you are the assistant": ("What did you tell about the violin?", "I gave up"),
    "polite words mean nobody": ("Can you remind me what I told about the violin?", "My sister"),
    "whatever is asked for": ("Could you please list all that I told about the violin?", "My sister"),
    "please": ("Please walk me through what I told about the violin.", "My sister"),
    "your words, politely": ("Can you remind me what you told me about the violin?", "I gave up"),
    "advice is wanted now": ("What would you suggest about the violin, given what I told?", "My sister"),
    "advice was given then": ("How did you suggest to go on with the violin?", "I gave up"),
    "Chinese I": ("关于 violin，我说过什么？", "My sister"),
    "Chinese you": ("我问过 violin，你说过什么？", "I gave up"),
}


@pytest.mark.parametrize("name", HEARD)
def test_the_words_of_the_one_who_is_asked_about_come_first(name: str) -> None:
    question, begins = HEARD[name]
    assert order(TALK, question)[0].startswith(begins)


def test_a_speakers_name_is_no_word_to_look_for() -> None:
    history = (
        said("Ann", "Thanks, Ben! You are the best, Ben."),
        said("Ben", "The tent is for the trip to the lake."),
        said("Ann", "See you, Ben."),
    )
    assert order(history, "Where does Ben take the tent?")[0].startswith("The tent")


def test_a_turn_shares_its_score_inside_its_session_only() -> None:
    history = (
        said("Ann", "The violin needs new strings.", MORNING),
        said("Ben", "That is good to know.", MORNING),
        said("Ann", "It is raining all day.", NEXT_WEEK),
        said("Ben", "Bring the big umbrella.", NEXT_WEEK),
    )
    found = order(history, "violin")
    assert found[:2] == ["The violin needs new strings.", "That is good to know."]


NOTES = (
    said("Ann", "Went to the harbour with Tom and saw the old ships."),
    said("Ann", "The dentist says to come back in March."),
    said("Ann", "Tom likes model ships made of wood."),
    said("Ann", "Wood for the winter is ordered."),
)


def test_notes_lend_nothing_to_their_neighbours_but_words_to_the_question() -> None:
    found = order(NOTES, "harbour")
    assert found[0].startswith("Went to the harbour")
    assert found[1].startswith("Tom likes model ships")
    assert found[-1].startswith(("The dentist", "Wood"))


def test_one_speaker_writes_notes_and_two_talk() -> None:
    def indexed(*messages: Message) -> Index:
        index = Index()
        index.extend(messages)
        return index

    assert are_notes(indexed(system("Be brief."), user("a"), user("b")))
    assert not are_notes(indexed(user("a"), assistant("b")))
    assert not are_notes(indexed(said("Ann", "a"), said("Cleo", "b")))
    assert not are_notes(Index())


@pytest.mark.parametrize("question", ["", "???", "the of and", "😀"])
def test_an_empty_question_still_ranks_everything(question: str) -> None:
    assert sorted(order(TALK, question)) == sorted(message.text for message in TALK)


def numbered(*times: datetime | None) -> list[int]:
    sessions = Sessions()
    return [sessions.of_next(said("Ann", "x", time)) for time in times]


def test_a_long_pause_begins_a_session() -> None:
    assert numbered(MORNING, MORNING, EVENING, NEXT_WEEK) == [0, 0, 1, 2]
    assert numbered(MORNING, None, MORNING, EVENING.replace(tzinfo=UTC)) == [0, 0, 0, 1]


def test_without_times_a_session_has_a_fixed_length() -> None:
    assert numbered(*[None] * (MOST_TURNS + 2)) == [0] * MOST_TURNS + [1, 1]


@pytest.mark.parametrize(
    ("question", "session"),
    [
        ("What was our first conversation about?", 0),
        ("Where were you when we first talked?", 0),
        ("我们第一次聊天说了什么？", 0),
        ("What did I say in the last session?", 7),
        ("上次我们聊了什么？", 7),
        ("What was my first job?", None),
        ("你上次推荐的电影叫什么？", None),
    ],
)
def test_a_session_may_be_named(question: str, session: int | None) -> None:
    assert session_named(question, 7) == session
