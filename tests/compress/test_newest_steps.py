"""Which steps stand after a compaction, and which of their results are abridged: figures on both sides of a border."""

from itertools import pairwise

import pytest

from everlong.compress.draft import Draft, Task, draft_of
from everlong.compress.newest_steps import REPLY_EXCHANGE, before_newest, movable, stand
from everlong.compress.steps.choice.by_need import by_need
from everlong.core import History, Message, Role
from everlong.tokens import Counter
from tests.core.build import assistant, calls, result, system, user

COUNTER = Counter("gpt-4o")


def lines(tokens: int) -> str:
    return "\n".join(f"line {n}" for n in range(tokens // 4))  # a line and its end have four tokens


def work(*sizes: int) -> History:
    steps = [message for n, size in enumerate(sizes) for message in (calls(f"c{n}"), result(f"c{n}", lines(size)))]
    return (system("s"), user("Fix the build."), *steps, assistant("Done."), user("And now?"))


def task(target: int) -> Task:
    return Task(target=target, counter=COUNTER, keeps_task=True)


def drafted(history: History, target: int) -> Draft:
    return draft_of(history, task(target))


def test_what_is_protected_cannot_be_moved() -> None:
    history = work(100)
    fixed = COUNTER.messages([history[0], history[1], history[-1]])
    assert movable(drafted(history, 5_000), task(5_000)) == 5_000 - fixed


#: sizes of results, newest tokens -> which stand, which of them abridged; the target is 8 000
CASES = {
    "three steps, however little is meant for the newest": ((200, 200, 200, 200), 0, [2, 3], []),
    "older ones within their room": ((200, 200, 200, 200), 900, [0, 1, 2, 3], []),
    "large ones abridged, the oldest first": ((200, 200, 3_000, 3_000), 5_000, [0, 1, 2, 3], [2]),
    "all of them where little is meant for the newest": ((200, 200, 3_000, 3_000), 500, [2, 3], [2, 3]),
    "an older step with one large result": ((200, 4_000, 200, 200), 3_300, [0, 1, 2, 3], [1]),
    "… but not where little is meant for the newest": ((200, 4_000, 200, 200), 2_200, [0, 2, 3], []),
    "a step too large even so is passed over": ((200, 9_000, 200, 200), 1_500, [0, 2, 3], []),
}


@pytest.mark.parametrize("case", CASES)
def test_which_steps_stand(case: str) -> None:
    sizes, newest, standing, abridged = CASES[case]
    draft = drafted(work(*sizes), 8_000)
    found = stand(draft, task(8_000), newest)
    kept = [number for number in range(len(sizes)) if 2 + 2 * number not in found.gone]
    assert kept == standing
    assert sorted((part.place[0] - 3) // 2 for part in found.abridged) == abridged


@pytest.mark.parametrize(("size", "small"), [(300, True), (330, False)])
def test_a_small_result_stays_whole(size: int, small: bool) -> None:
    found = stand(drafted(work(100, 9_000, size), 8_000), task(8_000), 0)
    assert (7 not in [part.place[0] for part in found.abridged]) is small


def test_where_people_only_talk_no_step_has_to_stand() -> None:
    talk = [message for n in range(20) for message in (user(f"Question {n}"), assistant(f"Answer {n}"))]
    question = "When did Ann move to Oslo, and which of her friends carried all the heavy boxes that day?"
    found = stand(drafted((system("s"), *talk, user(question)), 100), task(100), 0)
    assert len(found.gone) == 39  # all but the task


def test_the_newest_steps_are_spared() -> None:
    def shout(draft: Draft, _: Task) -> Draft:
        return draft.with_messages([(n, user("!"), 5) for n, _ in draft.open()], ())

    draft = drafted(work(10, 10, 10), 8_000)
    after = before_newest(shout)(draft, task(8_000))
    assert [slot.at for slot in after.slots if slot.message == user("!")] == [2, 3]
    assert after.protected == draft.protected


def test_a_result_in_a_users_role_is_abridged_behind_its_frame() -> None:
    history: list[Message] = [system("s"), user("Find the leak.")]
    for n in range(8):
        history += [
            assistant(f"Thought: look at module {n}.\nAction: read module_{n}.py"),
            user(f"Observation:\n{lines(3_000)}\nend of module {n}"),
        ]
    goal = task(8_000)
    after = by_need(draft_of(history, goal), goal)
    assert after.total <= 8_000
    observed = [message.text for message in after.messages if message.text.startswith("Observation:\n")]
    assert len(observed) >= 3
    assert observed[-1] == history[-1].text
    assert observed[-3].startswith("Observation:\n[excerpts: ")
    assert [message for message in after.messages if message in history[-6::2]] == history[-6::2]


def talk(question: str, answer: int) -> History:
    """Sixty questions with their answers, of that many words, and a last question."""
    rounds = [
        message
        for n in range(60)
        for message in (user(f"Day {n}: " + f"word{n} " * 40), assistant(f"Noted {n}. " + f"told{n} " * answer))
    ]
    return (system("s"), *rounds, user(question))


@pytest.mark.parametrize("answer", [0, 20, 80])
@pytest.mark.parametrize("target", [2_000, 3_000, 5_000])
@pytest.mark.parametrize(
    "question", ["And now?", "Please tell me in detail what we said on each of the days so far. " * 3]
)
def test_in_a_talk_no_answer_stays_without_its_question(question: str, target: int, answer: int) -> None:
    history = talk(question, answer)
    kept = by_need(drafted(history, target), task(target)).messages
    for before, message in pairwise(kept):
        if message.role is Role.ASSISTANT:
            assert before == history[history.index(message) - 1]


REPLY = "Great, I like the second one best, because the train leaves early. Please write it as a letter to my landlord."
QUESTION = "What did we say about the tides? " * 5


@pytest.mark.parametrize(("question", "stays"), [("And now?", True), (REPLY, True), (QUESTION, False)])
def test_a_short_message_or_a_reply_keeps_the_exchange_before_it(question: str, stays: bool) -> None:
    history = talk(question, 60)
    kept = by_need(drafted(history, 2_000), task(2_000)).messages
    assert (history[-3] in kept and history[-2] in kept) is stays


def test_an_answer_that_is_too_large_to_stay_is_quoted_for_its_reply() -> None:
    lines = [f"{n}. Take bus {n} to lake {n} and swim before noon." for n in range(300)]
    history = (*talk(REPLY, 60)[:-2], assistant("\n".join(lines)), user(REPLY))
    kept = by_need(drafted(history, 2_000), task(2_000)).messages
    sent = "\n".join(message.text for message in kept).split("\n")
    quoted = COUNTER.text("\n".join(line for line in lines if line in sent))
    assert history[-2] not in kept
    assert COUNTER.messages(kept) <= 2_000
    assert 0.05 * 2_000 <= quoted <= (REPLY_EXCHANGE + 0.05) * 2_000
