"""Failure modes as a person at the terminal meets them: the meter after a compaction (H4), failures told (H5)."""

import re
from pathlib import Path

import pytest

from everlong.core import EventKind
from everlong.llm import Answer, ReceivedRequest, Refusal, Step
from everlong.llm.scripted.hostile import TOO_LONG
from everlong.wire import Usage
from tests.cli.chat.talk import Talk, talking

THINGS = ("kettles", "lamps", "chairs", "maps", "ladders", "clocks", "violins", "tents", "bricks", "ropes")
PLACES = ("Leipzig", "Gdansk", "Porto", "Bergen", "Lyon", "Turku", "Cork", "Bari", "Split", "Brno")
METER = re.compile(r"(~?)([\d,]+) / ([\d,]+) tokens · (\d+) %")


def story(number: int, lines: int = 24) -> str:
    """Something to remember, no line like another."""
    return "\n".join(
        f"The depot in {PLACES[(number + at) % 10]} ships {number * at + 3} {THINGS[(3 * at + number) % 10]} "
        f"under order {number}{at:02}-{7 * at + number} to shop {at}."
        for at in range(lines)
    )


def is_summary(asked: ReceivedRequest) -> bool:
    """A request of the summariser: the thread's own turns begin with a question of ours."""
    return not asked.messages[-1].text.startswith("Q:")


def telling(asked: ReceivedRequest) -> Step:
    """Answers; a summary costs far more than any meter should show."""
    if is_summary(asked):
        return Answer(text="Kettles ship on Tuesday.", usage=Usage(prompt=12_345, output=2_345))
    return Answer(text=f"Noted, {asked.number}.")


def fill(talk: Talk) -> None:
    for number in range(7):
        talk.say(f"Q: {story(number)}")


def last_meter(seen: str) -> tuple[str, int, int, int]:
    sign, used, limit, percent = METER.findall(seen)[-1]
    return sign, int(used.replace(",", "")), int(limit.replace(",", "")), int(percent)


@pytest.mark.parametrize("small", [False, True], ids=["a model writes the summary", "rules write it"])
def test_H4_the_meter_right_after_compaction_is_the_size_of_what_will_be_sent(tmp_path: Path, small: bool) -> None:
    with talking(tmp_path, telling, tools=False, small=small) as talk:
        fill(talk)
        before = last_meter(talk.say("Q: before"))
        after = last_meter(talk.do("/compact"))
        assert before[0] == ""
        assert after[0] == "~"
        assert after[1] < 0.8 * before[1]
        seen = last_meter(talk.say("Q: x"))
        sent = talk.model.requests[-1].tokens
        assert abs(sent - after[1]) <= 0.1 * sent + 20
        assert seen[0] == ""
        assert seen[1] == sent + talk.model.counter.message(
            talk.chat.session.engine.threads.last(talk.chat.session.thread, 1)[0].entry
        )  # type: ignore[arg-type]
        for _, used, limit, percent in (before, after, seen):
            assert limit == 16_000
            assert percent == round(100 * used / limit)


def test_H4_the_meter_after_an_automatic_cut_goes_down_and_up_again_only_with_words(tmp_path: Path) -> None:
    with talking(tmp_path, telling, tools=False, small=True, window=6_000) as talk:
        meters, cuts = [], []
        for number in range(12):
            seen = talk.say(f"Q: {story(number)}")
            meters.append(last_meter(seen))
            cuts.append("compacted:" in seen)
        assert any(cuts)
        for at in range(1, len(meters)):
            assert (meters[at][1] < meters[at - 1][1]) == cuts[at]
            assert meters[at][1] <= 6_000


def test_H4_undoing_shows_the_size_before_again(tmp_path: Path) -> None:
    with talking(tmp_path, telling, tools=False, small=True) as talk:
        fill(talk)
        before = last_meter(talk.say("Q: now"))
        talk.do("/compact")
        undone = last_meter(talk.do("/undo"))
        assert undone[0] == "~"
        assert abs(undone[1] - before[1]) <= 0.1 * before[1]


def test_H5_a_summariser_that_fails_is_told_and_the_talk_goes_on(tmp_path: Path) -> None:
    def broken(asked: ReceivedRequest) -> Step:
        if is_summary(asked):
            return Refusal(400, '{"error":{"message":"the summariser is on strike"}}')
        return Answer(text="Noted.")

    with talking(tmp_path, broken, tools=False) as talk:
        fill(talk)
        talk.say("Q: and now?")
        seen = " ".join(talk.do("/compact").split())
        assert "messages by rules" in seen
        assert "the summariser is on strike" in seen
        assert "Noted." in talk.say("Q: still there?")
        session = talk.chat.session
        events = session.engine.threads.events(session.thread)
        started = [event.id for event in events if event.kind is EventKind.SUMMARY_STARTED]
        ends = (EventKind.SUMMARY_APPLIED, EventKind.SUMMARY_SKIPPED, EventKind.SUMMARY_FAILED)
        assert started
        assert sorted(event.parent for event in events if event.kind in ends) == sorted(started)


def test_H5_an_overflow_nothing_helps_against_is_one_clear_line_with_what_to_do(tmp_path: Path) -> None:
    with talking(tmp_path, lambda _: Refusal(400, TOO_LONG), tools=False) as talk:
        seen = talk.say("Q: hello")
        assert seen.count("✗") == 1
        assert "/compact makes it shorter" in seen
        assert talk.chat.error
        assert len(talk.model.requests) <= 4


def test_H5_pins_that_fill_the_window_are_told_at_the_prompt(tmp_path: Path) -> None:
    with talking(tmp_path, telling, tools=False, window=4_096) as talk:
        talk.do(f"/pin {' '.join(story(n) for n in range(6))}")
        seen = talk.say("Q: hello")
        assert "✗" in seen
        assert "pinned text" in seen


def test_H5_a_cut_is_announced_before_it_comes(tmp_path: Path) -> None:
    with talking(tmp_path, telling, tools=False, small=True, window=6_000) as talk:
        seen = [talk.say(f"Q: {'kettle ' * 120} {number}") for number in range(40)]
        warned = next(at for at, text in enumerate(seen) if "a compaction is near" in text)
        cut = next(at for at, text in enumerate(seen) if "compacted:" in text)
        assert warned < cut
