"""The commands of the chat, each given as a person gives it, with a scripted model."""

import json
import re
from pathlib import Path

import pytest

from everlong.agent import OWN_TOOLS
from everlong.cli.chat.commands import COMMANDS
from everlong.cli.words.english import ENGLISH
from everlong.cli.words.wording import LANGUAGES, Words
from everlong.core import Image, Point
from everlong.llm import Answer, ReceivedRequest, Refusal, Step
from tests.cli.chat.talk import Talk, talking

LONG = "The depot in Leipzig ships blue kettles on Tuesday. " * 24
PIXEL = b"\x89PNG\r\n\x1a\n" + b"\0" * 40


def answering(asked: ReceivedRequest) -> Step:
    """Speaks at length; reads the file it is asked to read; summaries are written in words."""
    last = asked.messages[-1]
    if last.results:
        return Answer(text="I read it.")
    if "read the file" in last.text:
        return Answer(text="One moment.", calls=(("read_file", '{"path": "notes.txt"}'),))
    if "refuse" in last.text:
        return Refusal(400, '{"error":{"message":"the model is on strike"}}')
    return Answer(text=f"Answer {asked.number}: {LONG if 'long' in last.text else 'fine'}")


def fill(talk: Talk, turns: int = 6) -> None:
    for number in range(turns):
        talk.say(f"long story {number}: ticket T-{number}40 {LONG}")


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("/context", "This thread is still empty."),
        ("/compact", "This thread is still empty."),
        ("/cost", "This thread is still empty."),
        ("/undo", "This thread is still empty."),
        ("/delete", "This thread is still empty."),
        ("/delete undo", "This thread is still empty."),
        ("/why", "Nothing was left out of the last request."),
        ("/unpin", "This thread is still empty."),
        ("/unpin 7", "This thread is still empty."),
        ("/recall kettle", "This thread is still empty."),
        ("/recall", "Give some words to search for."),
        ("/search", "Give some words to search for."),
        ("/search kettle", "Nothing found."),
        ("/threads", "There are no threads here yet."),
        ("/threads 3", "There are no threads here yet."),
        ("/new", "New thread."),
        ("/clear", "New thread."),
        ("/model", "scripted, window 16,000 (reported by the server)"),
        ("/model other", "From now on: other, window 16,000"),
        ("/threshold", "Compaction starts at 90 % of the budget:"),
        ("/threshold 60", "Compaction starts at 60 % of the budget:"),
        ("/threshold 60 %", "Compaction starts at 60 % of the budget:"),
        ("/threshold 39", "The threshold must be a whole number from 40 to 95."),
        ("/threshold 96", "The threshold must be a whole number from 40 to 95."),
        ("/threshold much", "The threshold must be a whole number from 40 to 95."),
        ("/show", "There are no tool calls yet."),
        ("/image", "Which file? /image FILE"),
        ("/image ~nobody-has-this-name/x.png", "x.png: No such file or directory"),
        ("/image /dev/zero", "not a picture that models accept"),
        ("/image nowhere.png", "nowhere.png: No such file or directory"),
        ("/title", "Title: (untitled)"),
        ("/title  Kettles and more ", "Title: Kettles and more"),
        ("/pin", "This thread is still empty."),
        ("/pin Never on Saturdays", "Pinned: Never on Saturdays"),
        ("/help", "/threshold [40-95]"),
        ("/HELP", "/threshold [40-95]"),
        ("/compat", "unknown command /compat; did you mean /compact?"),
        ("/thread", "unknown command /thread; did you mean /threads?"),
        ("/xyzzy", "unknown command /xyzzy; /help lists all"),
        ("/\x1b[31mred", "/help lists all"),
    ],
)
def test_a_command_in_a_new_thread(tmp_path: Path, line: str, shown: str) -> None:
    with talking(tmp_path, tools=False) as talk:
        seen = talk.do(line)
    assert shown in seen
    assert "\x1b" not in seen


def test_every_command_is_in_the_help_with_words_in_both_languages(tmp_path: Path) -> None:
    for language in LANGUAGES:
        with talking(tmp_path, language=language, tools=False) as talk:
            seen = " ".join(talk.do("/help").split())
        for command in COMMANDS:
            assert command.name in seen
            assert Words(language, "chat")(command.key).replace("  ", " ") in seen or language is not ENGLISH


def test_exit_leaves(tmp_path: Path) -> None:
    with talking(tmp_path, tools=False) as talk:
        talk.do("/exit")
        assert talk.chat.leaving


def test_the_map_says_where_the_window_goes(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("kettles: 40\n")
    with talking(tmp_path, answering) as talk:
        talk.say("please read the file")
        seen = talk.do("/context")
        figures = {row[0]: row[1] for row in re.findall(r"^\s(\w[\w ,]*?)\s{2,}(\d[\d,]*)\s{2,}", seen, re.MULTILINE)}
    assert {"system", "user", "assistant", "tools", "tool schemas", "free"} <= set(figures)
    assert sum(int(figure.replace(",", "")) for figure in figures.values()) == 16_000


def test_compacting_undoing_and_what_was_left_out(tmp_path: Path) -> None:
    with talking(tmp_path, answering, tools=False, small=True) as talk:
        fill(talk)
        session = talk.chat.session
        before = talk.chat.worker.do(session.meter())
        seen = talk.do("/compact the tickets")
        after = talk.chat.worker.do(session.meter())
        assert "Compacted" in seen
        assert after.tokens < before.tokens
        assert "summary, excerpts" in talk.do("/context")
        point = session.engine.threads.open(session.thread).point
        assert point is not None
        assert isinstance(point.entry, Point)
        talk.say("short")
        why = talk.do("/why")
        assert "left out" in why
        reference = re.search(r"\b[0-9a-f]{16}\b", why)
        assert reference is not None
        assert "Leipzig" in talk.do(f"/recall {reference[0]}")
        assert "Undone" in talk.do("/undo")
        assert talk.chat.worker.do(session.meter()).tokens > after.tokens
        assert "There is no compaction to undo." in talk.do("/undo")


def test_what_is_deleted_is_not_sent_and_comes_back(tmp_path: Path) -> None:
    with talking(tmp_path, answering, tools=False) as talk:
        talk.say("the code word is heron")
        talk.say("and the second is otter")
        assert "Deleted: 2 messages" in talk.do("/delete")
        talk.say("what else?")
        sent = "\n".join(message.text for message in talk.model.requests[-1].messages)
        assert ("heron" in sent, "otter" in sent) == (True, False)
        assert "Nothing found" in talk.do("/search otter")
        assert "Restored: 2 messages." in talk.do("/delete undo")
        assert "There is nothing to restore" in talk.do("/delete undo")
        talk.say("and now?")
        sent = "\n".join(message.text for message in talk.model.requests[-1].messages)
        assert "otter" in sent
        assert "Deleted: 1 message " in talk.do("/delete 1")
        assert "no message 99" in talk.do("/delete 99")
        assert "No message x" in talk.do("/delete x")


def test_compacting_what_is_short_is_told(tmp_path: Path) -> None:
    with talking(tmp_path, answering, tools=False) as talk:
        talk.say("hello")
        assert "Not compacted: nothing worth a summary" in talk.do("/compact")


def test_pins_are_kept_listed_and_let_go(tmp_path: Path) -> None:
    with talking(tmp_path, answering, tools=False) as talk:
        talk.do("/pin Never deploy on Saturdays")
        talk.say("the code word is heron")
        assert "Pinned: the code word is heron" in talk.do("/pin 1")
        listed = talk.do("/pin")
        assert "1  Never deploy on Saturdays" in listed
        assert "2  #1 the code word is heron" in listed
        assert "No message 99" in talk.do("/pin 99")
        talk.say("and now?")
        assert any("Never deploy" in message.text for message in talk.model.requests[-1].messages)
        assert "No pin 9" in talk.do("/unpin 9")
        assert "No pin ?" in talk.do("/unpin")
        assert "Unpinned: #1" in talk.do("/unpin 2")
        assert "Unpinned: Never deploy" in talk.do("/unpin")
        assert "Nothing is pinned" in talk.do("/pin")


def test_recall_and_search_find_what_was_said(tmp_path: Path) -> None:
    with talking(tmp_path, answering, tools=False) as talk:
        talk.say("the password of the depot is heron")
        talk.do("/new")
        talk.say("something else altogether")
        assert "Nothing found" in talk.do("/recall heron depot")
        found = talk.do("/search heron depot")
        assert "the password of the depot is heron" in found
        assert "heron" in found.splitlines()[0]  # the title of the other thread: its first words
        talk.do("/threads 2")
        assert "the password of the depot" in talk.do("/recall heron")


def test_threads_are_listed_and_chosen_by_number(tmp_path: Path) -> None:
    with talking(tmp_path, answering, tools=False) as talk:
        talk.say("first thread")
        first = talk.chat.session.thread
        talk.do("/new About kettles")
        talk.say("second thread")
        second = talk.chat.session.thread
        talk.person.answers = ["2"]
        seen = talk.do("/threads")
        assert "here  About kettles" in seen
        assert "Continuing “first thread”, 3 messages." in seen
        assert "your last message: first thread" in seen
        assert talk.chat.session.thread == first
        talk.do("/threads 1")
        assert talk.chat.session.thread == second
        assert "No thread 7" in talk.do("/threads 7")
        talk.person.answers = [""]
        talk.do("/threads")
        assert talk.chat.session.thread == second


def test_threads_of_sub_agents_are_not_talked_in(tmp_path: Path) -> None:
    with talking(tmp_path, tools=False) as talk:
        talk.say("hello")
        talk.do("/title mine")
        for number in range(45):
            metadata = json.dumps({"parent": {"thread": "x", "call": "y"}})
            talk.chat.session.engine.threads.create(f"sub-{number}", metadata=metadata)
        seen = talk.do("/threads")
        assert "sub-" not in seen
        assert "here  mine" in seen


def test_a_call_is_folded_to_one_line_and_opened_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("kettles: 40\nteapots: 12\n")
    with talking(tmp_path, answering) as talk:
        seen = talk.say("please read the file")
        assert re.search(r"✓ 1 read_file notes\.txt · \d+ lines? · \d+\.\d s", seen)
        assert "teapots" not in seen
        assert "teapots: 12" in talk.do("/show 1")
        assert "teapots: 12" in talk.do("/show")
        assert "There is no call 4; the last is 1." in talk.do("/show 4")


def test_a_picture_goes_with_the_next_message_only(tmp_path: Path) -> None:
    (tmp_path / "p.png").write_bytes(PIXEL)
    (tmp_path / "p.txt").write_text("no picture")
    with talking(tmp_path, tools=False) as talk:
        assert "not a picture that models accept" in talk.do(f"/image {tmp_path / 'p.txt'}")
        assert "p.png (image/png, 1 KB) goes with the next message." in talk.do(f"/image '{tmp_path / 'p.png'}'")
        talk.say("what is this?")
        talk.say("and this?")
        pictures = [sum(isinstance(p, Image) for p in asked.messages[-1].parts) for asked in talk.model.requests]
    assert pictures == [1, 0]


def test_another_model_is_asked_from_the_next_turn_on(tmp_path: Path) -> None:
    with talking(tmp_path, tools=False) as talk:
        talk.say("one")
        talk.do("/model second-model")
        talk.say("two")
        assert [asked.model for asked in talk.model.requests] == ["scripted", "second-model"]


def test_the_threshold_is_the_threads_own(tmp_path: Path) -> None:
    with talking(tmp_path, answering, tools=False, small=True) as talk:
        talk.do("/threshold 40")
        thread = talk.chat.session.thread
        assert json.loads(talk.chat.session.engine.threads.thread(thread).settings) == {"threshold": 0.4}
        cuts = [number for number in range(10) if "compacted:" in talk.say(f"long {number} {LONG}")]
        talk.do("/new")
        later = [number for number in range(10) if "compacted:" in talk.say(f"long {number} {LONG}")]
        assert cuts
        assert not later


def test_the_todo_list_belongs_to_its_thread(tmp_path: Path) -> None:
    def listing(asked: ReceivedRequest) -> Step:
        if asked.messages[-1].results or "list" not in asked.messages[-1].text:
            return Answer(text="ok")
        return Answer(calls=(("todo", '{"items": [{"text": "buy kettles", "state": "open"}]}'),))

    with talking(tmp_path, listing) as talk:
        talk.say("make a list")
        talk.say("go on")
        assert any("buy kettles" in message.text for message in talk.model.requests[-1].messages)
        talk.do("/new")
        talk.say("anything to do?")
        assert not any("buy kettles" in message.text for message in talk.model.requests[-1].messages)
        talk.do("/threads 2")
        talk.say("go on")
        assert any("buy kettles" in message.text for message in talk.model.requests[-1].messages)


def test_no_tool_of_a_server_can_have_the_name_of_one_of_ours(tmp_path: Path) -> None:
    with talking(tmp_path) as talk:
        ours = {tool.name for tool in talk.chat.session.agent.tools}
    assert ours == set(OWN_TOOLS)


def test_cost_tells_tokens_money_and_what_compaction_saved(tmp_path: Path) -> None:
    with talking(tmp_path, answering, tools=False, window=4_000) as talk:
        talk.do("/model gpt-4o")
        talk.say("first")
        seen = talk.do("/cost")
        assert re.search(r"gpt-4o +1 +\d", seen)
        assert "Compaction" not in seen
        for number in range(6):
            talk.say(f"turn {number} " + "word " * 900)
        seen = " ".join(talk.do("/cost").split())
        kept_out = re.search(r"Compaction saved ([\d,]+) tokens in (\d+) requests, about ([\d.]+) dollars", seen)
        assert kept_out is not None
        assert int(kept_out[1].replace(",", "")) > 1_000
        talk.do("/model nobody-prices-this")
        talk.say("last")
        assert "1 call has no known price" in " ".join(talk.do("/cost").split())


def test_cost_has_the_work_of_sub_agents_in_it(tmp_path: Path) -> None:
    def script(asked: ReceivedRequest) -> Step:
        if asked.messages[-1].results or "dig" in asked.messages[-1].text:
            return Answer(text="Done.")
        return Answer(calls=(("spawn", '{"task": "dig a hole"}'),))

    with talking(tmp_path, script) as talk:
        talk.person.answers = ["y"] * 5
        talk.say("have a hole made")
        seen = talk.do("/cost")
    assert re.search(r"scripted +3 ", seen)
    assert "with 1 sub-agent" in seen


def test_a_thread_is_chosen_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    with talking(tmp_path, answering, tools=False) as talk:
        for name in ("ash-1", "ash-2", "elm"):
            talk.chat.session.engine.threads.create(name, title=name)
        assert "Continuing “elm”" in talk.do("/threads el")
        assert talk.chat.session.thread == "elm"
        assert "matches 2 sessions" in talk.do("/threads ash")
        assert "No thread oak in the list." in talk.do("/threads oak")


@pytest.mark.parametrize("command", ["/threads", "/show", "/pin", "/unpin", "/threshold", "/restore"])
def test_a_number_of_any_length_is_one_line(command: str, tmp_path: Path) -> None:
    with talking(tmp_path, answering) as talk:
        talk.say("hello")
        assert talk.do(f"{command} {'9' * 5_000}").count("\n") <= 2
