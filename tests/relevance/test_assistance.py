"""Talk with an assistant: the user's words first, messages whole; between two people nobody comes first."""

from dataclasses import replace

from hypothesis import given, strategies as st

from everlong import fit
from everlong.core import Message, Role, Text
from everlong.relevance.chunks import ChunkKind
from everlong.relevance.index import Index
from everlong.relevance.ranking import ranked
from everlong.relevance.talk.worth import LONGER, is_assisted
from tests.core.build import assistant, system, user


def answer(about: str) -> str:
    """A long answer that says what it is about once."""
    return "\n".join([about, *["Such things take a while, and it is best to note them down as they come. " * 4] * 6])


ANSWER = answer("Heat the kiln slowly, and apply the glaze in thin layers that dry in between.")
CHAT = (
    user("My kiln reaches 1,240 degrees, which glaze should I buy?"),
    assistant(ANSWER),
    user("I sold four bowls at the market in Lund."),
    assistant(answer("A stall by the market gate sells most bowls before noon.")),
    user("Thanks, that helps."),
    assistant(answer("You are welcome: the ferry leaves every morning.")),
)


def indexed(history: tuple[Message, ...]) -> Index:
    index = Index()
    index.extend(history)
    return index


def order(history: tuple[Message, ...], question: str) -> list[int]:
    """The messages of a talk, by their best chunk, most needed first."""
    index = indexed(history)
    numbers = ranked(index, (*history, user(question))).numbers
    return list(dict.fromkeys(index.chunks[number].at for number in numbers))


def test_what_the_user_said_comes_before_long_answers_about_the_same() -> None:
    assert order(CHAT, "How hot does the kiln get before the glaze is applied?")[0] == 0
    assert order(CHAT, "Can you list the bowls and the market I mentioned?")[0] == 2


def test_an_answer_that_is_asked_for_comes_first_and_whole() -> None:
    index = indexed(CHAT)
    numbers = ranked(index, (*CHAT, user("What did you say about how to heat the kiln and apply the glaze?"))).numbers
    answers = [index.chunks[number].at for number in numbers if index.chunks[number].kind is ChunkKind.ASSISTANT]
    whole = sum(chunk.at == 1 for chunk in index.chunks)
    assert whole > 1
    assert set(answers[:whole]) == {1}


def test_an_answer_that_is_needed_without_being_named_stays_whole() -> None:
    filler = tuple(
        message
        for number in range(900)
        for message in (user(f"The glaze of bowl {number} is dry."), assistant(f"Bowl {number} is noted, " * 9))
    )
    advice = "\n".join(
        ["Apply the glaze in thin layers that dry in between.", *(f"Step {n} takes {n} hours." for n in range(30))]
    )
    history = (CHAT[0], assistant(advice), *filler)
    messages = [{"role": message.role.value, "content": message.text} for message in history]
    messages.append({"role": "user", "content": "How thin are the layers of glaze, and do they dry in between?"})
    sent = "\n".join(str(message["content"]) for message in fit(messages, model="gpt-4o", budget=6_000).messages)
    assert advice in sent
    assert sum(f"glaze of bowl {number} is" in sent for number in range(900)) > 200, "the user's words come first"


def test_answers_have_no_room_of_their_own_where_they_are_asked_for_or_people_talk() -> None:
    index = indexed(CHAT)
    assert ranked(index, (*CHAT, user("How hot is the kiln?"))).answers
    assert not ranked(index, (*CHAT, user("What did you say about the kiln?"))).answers
    named = tuple(replace(message, name="Ann" if message.role is Role.USER else "Ben") for message in CHAT)
    assert not ranked(indexed(named), (*named, user("How hot is the kiln?"))).answers


def test_a_changed_fact_and_a_contradiction_come_with_the_newest_first() -> None:
    said = ("My rent is 900 crowns.", "I have never fired a kiln.", "My rent is 950 crowns.", "I fired a kiln today.")
    history = tuple(message for text in said for message in (user(text), assistant(ANSWER)))
    assert order(history, "How high is my rent in crowns?")[:2] == [4, 0]
    assert set(order(history, "Have I ever fired a kiln?")[:2]) == {2, 6}


def test_a_question_over_many_turns_finds_what_the_user_said_all_over_the_conversation() -> None:
    said = [f"Today I painted boat {n} in a colour called {n}." for n in range(20)]
    history = tuple(message for text in said for message in (user(text), assistant(ANSWER)))
    found = order(history, "Can you list the order in which I painted the boats, and in which colours?")
    assert set(found[:20]) == set(range(0, 40, 2))


def test_a_long_message_of_the_user_stays_whole() -> None:
    pasted = "\n".join(
        ["My notes on the rye bread.", *[f"Step {n}: fold the dough, wait, and write it down." for n in range(60)]]
    )
    history = (user(pasted), assistant(ANSWER * 3), *CHAT)
    index = indexed(history)
    own = sum(chunk.at == 0 for chunk in index.chunks)
    assert own > 1
    numbers = ranked(index, (*history, user("What are my notes on the rye bread?"))).numbers
    places = [place for place, number in enumerate(numbers) if index.chunks[number].at == 0]
    assert places == list(range(places[0], places[0] + own))


def test_two_people_are_no_assistant() -> None:
    named = tuple(Message(message.role, message.parts, name) for message, name in zip(CHAT, "ABABAB", strict=True))
    assert is_assisted(indexed(CHAT))
    assert not is_assisted(indexed(named))
    assert not is_assisted(indexed((user("Hello, how are you?"), assistant("Fine, and you?"))))
    assert not is_assisted(indexed((user("only notes"), user("and more"))))
    assert not is_assisted(Index())


def test_neither_system_text_nor_one_long_paste_makes_two_people_of_them() -> None:
    assert is_assisted(indexed((system(ANSWER * 9), *CHAT)))
    assert is_assisted(indexed((*CHAT, user(ANSWER * 9))))


@given(st.integers(1, 200), st.integers(1, 2_000), st.integers(1, 5), st.integers(1, 5))
def test_the_guard_is_the_usual_length_of_messages(asked: int, answered: int, users: int, answers: int) -> None:
    said = [Message(Role.USER, (Text("a" * asked),)) for _ in range(users)]
    said += [Message(Role.ASSISTANT, (Text("b" * answered),)) for _ in range(answers)]
    assert is_assisted(indexed(tuple(said))) == (answered >= LONGER * asked)
