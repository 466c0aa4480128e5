"""Which user messages are not a user's words. A user's words taken for a result would be the worse mistake."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings, strategies as st

from everlong.core.messages import History, Image, Message, Role, Text
from everlong.core.observations import FRAMES, Frame, FrameKind, frames_in, is_framed, is_nudge, said_by_users
from tests.core.build import assistant, calls, result, system, user

THOUGHT = "Thought: I look at the file.\nCode:\n```py\nprint(open('a.py').read())\n```<end_code>"
ANSWER = "The pier has forty berths; most of them are let by the season."


def kinds(history: History) -> dict[int, FrameKind]:
    return {at: framed.kind for at, framed in frames_in(history).items()}


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.name)
def test_every_frame_knows_its_sample(frame: Frame) -> None:
    found = frames_in((user("Mend the pump."), assistant(THOUGHT), user(frame.sample)))[2]
    assert (found.name, found.kind) == (frame.name, frame.kind)


@dataclass(frozen=True)
class Case:
    id: str
    history: History
    #: Where results and context stand.
    results: tuple[int, ...] = ()
    context: tuple[int, ...] = ()


def parts(*texts: str) -> Message:
    return Message(Role.USER, tuple(Text(text) for text in texts))


def work(act: str, came: str, times: int = 2) -> History:
    steps = [message for _ in range(times) for message in (assistant(act), user(came))]
    return (system("You act."), user("Find the leak in the harbour's accounts."), *steps)


RESULTS = [
    Case(
        "smolagents, code",
        work(THOUGHT, "Observation:\nExecution logs:\n42\nLast output from code snippet:\nNone"),
        (3, 5),
    ),
    Case("smolagents, code in tags", work("<code>\nx = 1\n</code>", "Observation:\nNone"), (3, 5)),
    Case("smolagents, calls", work("Calling tools:\n[{'id': 'c1'}]", "Call id: c1\nObservation:\n42"), (3, 5)),
    Case("smolagents, an error", work(THOUGHT, "Error:\nCode parsing failed\nNow let's retry: take care"), (3, 5)),
    Case("ReAct on one line", work("Thought: I search\nAction: search[pier]", "Observation: 40 berths"), (3, 5)),
    Case("ReAct with bold labels", work("**Thought:** hm\n**Action:** ls", "Observation: a.py"), (3, 5)),
    Case("Qwen", work('<tool_call>\n{"name": "ls"}\n</tool_call>', "<tool_response>\na.py\n</tool_response>"), (3, 5)),
    Case("OpenHands", work("<function=bash>\nls\n</function>", "EXECUTION RESULT of [bash]:\na.py"), (3, 5)),
    Case("Cline", work("<read_file>\n<path>a</path>\n</read_file>", "[read_file for 'a'] Result:\nx = 1"), (3, 5)),
    Case(
        "mini-swe-agent",
        work("THOUGHT: look\n```bash\nls\n```", "<returncode>0</returncode>\n<output>\na\n</output>"),
        (3, 5),
    ),
    Case("SWE-agent", work("DISCUSSION\nI look.\n```\nls\n```", "OBSERVATION:\na.py b.py", times=3), (3, 5, 7)),
    Case(
        "SWE-agent, by the end",
        work("I look.\n```\nls\n```", "a.py\n\n(Open file: n/a)\n(Current directory: /a)\nbash-$"),
        (3, 5),
    ),
    Case("AutoGen", work("```python\nprint(1)\n```", "exitcode: 0 (execution succeeded)\nCode output: 1"), (3, 5)),
    Case("JSON actions", work('{"action": "ls", "input": {}}', "Tool output: a.py"), (3, 5)),
    Case("Chinese", work("思考：看文件\n行动：读取", "观察结果：\n文件为空"), (3, 5)),
    Case("a frame that nobody told us about", work("Action: ls", "~~ what came back ~~:\na.py", times=3), (3, 5, 7)),
    Case(
        "two results of one action",
        (user("Go."), assistant(THOUGHT), user("Observation:\n1"), user("Observation:\n2")),
        (2, 3),
    ),
    Case(
        "system text between action and result",
        (user("Go."), assistant(THOUGHT), system("Be brief."), user("Observation:\n1")),
        (3,),
    ),
    Case(
        "a picture beside the result",
        (user("Go."), assistant(THOUGHT), Message(Role.USER, (Image(data="QUJD"), Text("Observation:\nseen")))),
        (2,),
    ),
    Case(
        "Cline, in parts with its environment",
        (
            parts("<task>\nMend it\n</task>", "<environment_details>\n# Tabs\n</environment_details>"),
            assistant("<list_files>\n<path>.</path>\n</list_files>"),
            parts(
                "[list_files for '.'] Result:", "a.py\nb.py", "<environment_details>\n# Tabs\n</environment_details>"
            ),
        ),
        (2,),
    ),
]
WORDS = [
    Case("a pasted log as the very first message", (user("Observation:\nthe pump stands still. Why?"),)),
    Case("a tagged text as the very first message", (user("<tool_result>\n42\n</tool_result>"),)),
    Case("a log after a plain answer", (user("Hi"), assistant(ANSWER), user("Observation:\nthe pump stands still"))),
    Case(
        "lab notes, again and again",
        tuple(m for n in range(5) for m in (user(f"Observation: mouse {n} sleeps"), assistant(ANSWER))),
    ),
    Case(
        "errors that a person pastes after code",
        tuple(m for n in range(4) for m in (user(f"Error:\nTraceback {n}"), assistant("Try this:\n```python\nx\n```"))),
    ),
    Case("a terminal that a person pastes", (user("Hi"), assistant(ANSWER), user("It says this:\nls\nbash-$"))),
    Case("a question about a tag", (user("Hi"), assistant(THOUGHT), user("<tool_result> - what does this tag mean?"))),
    Case("a question about the frame", (user("Hi"), assistant(THOUGHT), user("What is an Observation: line?"))),
    Case(
        "feedback inside a client's frame",
        (
            user("Go."),
            assistant("<write_to_file>\n<path>a</path>\n</write_to_file>"),
            user("[write_to_file for 'a'] Result:\nThe user denied this.\n<feedback>\nUse tabs!\n</feedback>"),
        ),
    ),
    Case(
        "an answer inside a client's frame",
        (
            user("Go."),
            assistant("<ask_followup_question>\n<question>Which?</question>\n</ask_followup_question>"),
            user("[ask_followup_question for 'Which?'] Result:\n<answer>\nThe red one\n</answer>"),
        ),
    ),
    Case(
        "smolagents, the next task behind the last result",
        (
            user("New task:\nMend the pump."),
            assistant("Thought: done.\n<code>\nfinal_answer('Mended.')\n</code>"),
            user("Observation:\nExecution logs:\nMended.\nNew task:\nPaint the pump. " + "Take care. " * 99),
        ),
    ),
    Case(
        "smolagents, task after task, each a message of its own",
        tuple(
            message
            for number in range(5)
            for message in (
                user(f"New task:\nMend pump {number}."),
                assistant("Calling tools:\n[{'id': 'call_1', 'function': {'name': 'final_answer'}}]"),
            )
        ),
    ),
    Case(
        "words beside a reminder of the client", (parts("<system-reminder>\nx\n</system-reminder>", "Mend the pump."),)
    ),
    Case("words after a reminder of the client", (user("<system-reminder>x</system-reminder>\nMend the pump."),)),
    Case("a user who speaks after another user", (user("Go."), user("Observation:\nit leaks"))),
    Case("a user after a real result", (user("Go."), calls("1"), result("1"), user("Observation:\nit leaks"))),
    Case("the same header twice only", work("Action: ls", "What came back:\na.py", times=2)),
    Case("the same header after plain answers", work(ANSWER, "My next question:\nhow many?", times=5)),
    Case("words that only mention files", (user("I have added these files to the chat, look at them."),)),
]
CONTEXT = [
    Case(
        "aider",
        (
            system("Act as an expert."),
            user("Here are summaries of some files present in my git repository.\n…"),
            assistant("Ok."),
            user("I have *added these files to the chat* so you can go ahead and edit them.\n…"),
            assistant("Ok, any changes I propose will be to those files."),
            user("Rename the pump."),
        ),
        context=(1, 3),
    ),
    Case(
        "OpenClaw, behind the newest result",
        (
            user("Rename the pump."),
            calls("1"),
            result("1"),
            user("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nnone\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"),
        ),
        context=(3,),
    ),
    Case(
        "codex",
        (user("<environment_context>\n  <cwd>/a</cwd>\n</environment_context>"), user("Rename the pump.")),
        context=(0,),
    ),
]


@pytest.mark.parametrize("case", [*RESULTS, *WORDS, *CONTEXT], ids=lambda case: case.id)
def test_what_is_not_a_users_words(case: Case) -> None:
    found = kinds(case.history)
    assert tuple(at for at, kind in found.items() if kind is FrameKind.RESULT) == case.results
    assert tuple(at for at, kind in found.items() if kind is FrameKind.CONTEXT) == case.context


def test_a_result_answers_the_nearest_action_before_it() -> None:
    history = work(THOUGHT, "Observation:\n42", times=3)
    assert [(at, framed.answers) for at, framed in frames_in(history).items()] == [(3, 2), (5, 4), (7, 6)]


def test_our_own_texts_are_nobodys_words() -> None:
    assert kinds((user("<background-0123abcd>\nQuoted …\n</background-0123abcd>"), user("Go."))) == {0: FrameKind.OURS}
    assert is_framed("  <summary-0123abcd>\n…")
    assert not is_framed("<background> of the pump")


@pytest.mark.parametrize(
    "text",
    [
        "continue",
        "Yes, please continue.",
        "go on",
        "OK",
        "ok, do it!",
        "继续",
        "好的，继续吧。",
        "Now proceed and carry out this plan.",
    ],
)
def test_what_only_says_to_go_on(text: str) -> None:
    assert is_nudge(user(text))


@pytest.mark.parametrize(
    "text", ["", "fix it", "yes, but delete x.py", "continue with the pump", "1", "继续修水泵", "no", "why?"]
)
def test_what_says_more(text: str) -> None:
    assert not is_nudge(user(text))


def test_a_picture_is_more_than_a_nudge() -> None:
    assert not is_nudge(Message(Role.USER, (Text("ok"), Image(data="QUJD"))))


SAID = st.sampled_from(
    [
        "Observation:\n1",
        "Observation: 2",
        "Tool output: 3",
        "words",
        "<tool_result>\n4\n</tool_result>",
        "Error:\n5",
        "",
        "观察：",
    ]
)
ACTED = st.sampled_from([THOUGHT, ANSWER, "", "Action: ls", "<tool_call>{}</tool_call>"])
talks = st.lists(
    st.one_of(SAID.map(user), ACTED.map(assistant), st.just(system("s")), st.just(calls("1")), st.just(result("1"))),
    max_size=24,
).map(tuple)


@given(talks)
@settings(max_examples=300, deadline=None)
def test_a_result_always_follows_an_assistant_with_nothing_but_results_and_system_text_between(
    history: History,
) -> None:
    found = frames_in(history)
    for at, framed in found.items():
        assert history[at].role is Role.USER
        if framed.kind is FrameKind.RESULT:
            assert 0 <= framed.answers < at
            assert history[framed.answers].role is Role.ASSISTANT
            between = range(framed.answers + 1, at)
            assert all(other in found or history[other].role is Role.SYSTEM for other in between)


def test_only_the_beginning_and_the_end_of_a_text_are_looked_at() -> None:
    """A text of megabytes costs no more than a short one: what stands in its middle decides nothing."""
    filler = "x" * 2_000_000
    long = (user("Go."), assistant(THOUGHT), user(f"Observation:\n{filler}<feedback>{filler}"))
    assert kinds(long) == {2: FrameKind.RESULT}
    assert kinds((user("Go."), assistant(f"{filler}\n<code>\n{filler}"), user("Observation: 1"))) == {}


def test_an_action_may_stand_between_long_thoughts_and_long_arguments() -> None:
    filler = "x" * 20_000
    acted = assistant(f"{filler}\nAction: write\n{filler}")
    assert kinds((user("Go."), acted, user("Observation: written"))) == {2: FrameKind.RESULT}


def test_what_users_said_is_neither_a_result_nor_context_nor_ours() -> None:
    beside = Message(Role.TOOL, (*result("1").parts, Text("and hurry")))
    files = user("I have *added these files to the chat* so you can go ahead and edit them.")
    history = (
        files,
        *work(THOUGHT, "Observation:\n42"),
        user("stop"),
        calls("1"),
        beside,
        user("<background-0123abcd>"),
    )
    assert list(said_by_users(history)) == ["and hurry", "stop", "Find the leak in the harbour's accounts."]
