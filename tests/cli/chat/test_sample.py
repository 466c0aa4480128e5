"""The sample thread of a chat."""

from pathlib import Path

from everlong.cli.chat.sample import begin_sample, sample_talk
from everlong.core import EventKind, Role
from everlong.llm import Answer
from everlong.tokens import Counter
from tests.cli.chat.talk import talking


def test_the_sample_fills_a_small_window_and_is_soon_cut(tmp_path: Path) -> None:
    with talking(tmp_path, lambda _: Answer(text="Indeed. " * 60), window=4_096, tools=False, small=True) as talk:
        messages, window = talk.chat.worker.do(begin_sample(talk.chat.session))
        assert (window, messages > 4) == (4_096, True)
        turns = [talk.say(f"question {number}") for number in range(8)]
        threads = talk.chat.session.engine.threads
        assert threads.events(talk.chat.session.thread, kinds=[EventKind.CONTEXT_COMPRESSED])
        assert any("compacted:" in seen for seen in turns)


def test_the_sample_has_questions_and_answers_in_words() -> None:
    talk = sample_talk(Counter("gpt-4o"), 3_000)
    assert [message.role for message in talk] == [Role.USER, Role.ASSISTANT] * (len(talk) // 2)
    assert all(message.text and not message.calls for message in talk)
    assert Counter("gpt-4o").messages(talk) <= 3_000
    assert all(message.text.isascii() or len(message.text) for message in sample_talk(Counter(), 900, latin=True))
