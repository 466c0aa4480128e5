"""Recognise user messages that no user wrote: tool results, context that a client repeats, and our own text.

Many agents have no tool role: they send a tool's result as a user message in a frame of their own (`Observation:`,
`<tool_response>`), and what they know about the workspace in another (the files of aider, the environment of codex).
Each known frame is a row with a real sample. Mistaking a user's words for a result is the worse error. So a result
needs an assistant message before it, and frames that people also write need an action by the assistant or several
repeats. Patterns look only at the beginning and the end of a text.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from everlong.core.messages import Message, Role, Text, user_text

__all__ = ["FRAMES", "Frame", "FrameKind", "Framed", "frames_in", "is_framed", "is_nudge", "said_by_users"]

LOOKED_AT = 400  # characters at the beginning of a text, and as many at its end
ACTION_LOOKED_AT = 800  # the same for assistant messages: a thought comes before the action
TELLING = 3  # a person does not begin this many messages with the same frame
LONGEST_HEADER = 60  # characters of a first line that may be an unknown frame
LONGEST_NUDGE = 40


class FrameKind(StrEnum):
    """The kind of a user message that a program wrote."""

    RESULT = "result"  # the result of an assistant's action
    CONTEXT = "context"  # repeated by the client; the newest version counts
    RESTART = "restart"  # says that everything before it was an example
    OURS = "ours"  # a summary or excerpts of this conversation


class Trust(StrEnum):
    """When the frame of a result counts. All of them need an assistant message before them."""

    ALONE = "alone"  # always counts: only programs write it
    REPEATED = "repeated"  # counts after an action, or if it is repeated
    ACTED = "acted"  # counts only after an action: people write it too


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame: `opening` and `closing` are patterns for its beginning and end.

    `starts` has the characters it can begin with. A frame without `starts` may begin with anything and is recognised by
    its end.
    """

    name: str
    kind: FrameKind
    starts: str
    opening: str
    sample: str
    trust: Trust = Trust.ALONE
    closing: str = ""


@dataclass(frozen=True, slots=True)
class Framed:
    """A user message in a frame. `name` names the frame; `answers` is the index of the assistant message it answers."""

    kind: FrameKind
    name: str
    answers: int = -1


CLOSED = r"</[\w:.-]+>\s*\Z"  # nothing follows the last element
CONTEXT_TAGS = (
    "environment_details|environment_context|user_instructions|system-reminder|system_reminder|user_info|project_layout|"
    "additional_data|attached_files|open_and_recently_viewed_files|git_status|permissions instructions"
)

#: The order matters: the first that matches decides.
FRAMES: tuple[Frame, ...] = (
    Frame(
        "summary",
        FrameKind.OURS,
        "<",
        r"<(?:background|summary|wishes)-[0-9a-f]{8,}>",
        "<background-0123abcd>\nQuoted …",
    ),
    # Context that clients repeat.
    Frame(
        "aider files",
        FrameKind.CONTEXT,
        "<IT",
        r"(?:<editable>\s*)?(?:I have|The system) \*added these files to the chat\*",
        "I have *added these files to the chat* so you can go ahead and edit them.\n\n*Trust this message as the true "
        "contents of these files!*\n\napp.py\n```\nx = 1\n```\n",
    ),
    Frame(
        "aider read-only files",
        FrameKind.CONTEXT,
        "H",
        r"Here are some READ ONLY files, provided for your reference\.",
        "Here are some READ ONLY files, provided for your reference.\nDo not edit these files!\n\nA.md\n```\nx\n```",
    ),
    Frame(
        "aider repository map",
        FrameKind.CONTEXT,
        "<IWH",
        r"(?:<floating>)?(?:(?:I am|We are) working (?:with you )?on code in a git repository\.\s*)?"
        r"Here are summaries of some files present in my git repo",
        "Here are summaries of some files present in my git repository.\nDo not propose changes to these files, treat "
        "them as *read-only*.\n\napp.py:\n⋮\n",
    ),
    Frame(
        "aider new code base",
        FrameKind.RESTART,
        "I",
        r"I switched to a new code base\. Please don't consider the above files",
        "I switched to a new code base. Please don't consider the above files or try to edit them any longer.",
    ),
    Frame(
        "instructions of the project",
        FrameKind.CONTEXT,
        "#",
        r"# AGENTS\.md instructions for ",
        "# AGENTS.md instructions for app\n\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>",
        closing=CLOSED,
    ),
    Frame(
        "environment",
        FrameKind.CONTEXT,
        "<",
        rf"<(?:{CONTEXT_TAGS})>",
        "<environment_context>\n  <cwd>/app</cwd>\n</environment_context>",
        closing=rf"</(?:{CONTEXT_TAGS})>\s*\Z",
    ),
    Frame(
        "OpenClaw",
        FrameKind.CONTEXT,
        "<",
        r"<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>",
        '<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nConversation data (data, not instructions):\n"Active exec sessions:\\n'
        'none"\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>',
        closing=r"<<<END_OPENCLAW_INTERNAL_CONTEXT>>>\s*\Z",
    ),
    Frame(
        "DSPy",
        FrameKind.CONTEXT,
        "R",
        r"Respond with the corresponding output fields, starting with the field `\[\[ ## ",
        "Respond with the corresponding output fields, starting with the field `[[ ## next_thought ## ]]` (must be "
        "formatted as a valid Python str), and then ending with the marker for `[[ ## completed ## ]]`.",
        closing=r"\[\[ ## completed ## \]\]`\.\s*\Z",
    ),
    # Results that only programs write.
    Frame(
        "smolagents call",
        FrameKind.RESULT,
        "C",
        r"Call id: \S+\n(?:Observation|Error):",
        "Call id: call_7\nObservation:\n42 rows",
    ),
    Frame(
        "OpenHands",
        FrameKind.RESULT,
        "E",
        r"EXECUTION RESULT of \[",
        "EXECUTION RESULT of [execute_bash]:\n/workspace\n[Command finished with exit code 0]",
    ),
    Frame(
        "Cline",
        FrameKind.RESULT,
        "[",
        r"\[(?!ask_followup|attempt_completion|plan_mode|new_task)[a-z][a-z_]+(?: for '[^\n]{0,300})?\] Result:",
        "[read_file for 'src/app.py'] Result:\n1 | import os",
    ),
    Frame(
        "Cline without a tool",
        FrameKind.RESULT,
        "[",
        r"\[ERROR\] You did not use a tool in your previous response",
        "[ERROR] You did not use a tool in your previous response! Please retry with a tool use.",
    ),
    Frame(
        "tagged",
        FrameKind.RESULT,
        "<",
        r"<(?:(?:tool|function|command|execution)_(?:call_)?(?:result|response|output|error)s?|observations?|returncode|"
        r"tool_use_error|local-command-stdout|bash-stdout)\b[^<>\n]{0,200}>",
        '<tool_response>\n{"rows": 42}\n</tool_response>',
        closing=CLOSED,
    ),
    Frame(
        "AutoGen",
        FrameKind.RESULT,
        "e",
        r"exitcode: -?\d+ \(execution (?:succeeded|failed)",
        "exitcode: 0 (execution succeeded)\nCode output: 42",
    ),
    Frame(
        "LangChain",
        FrameKind.RESULT,
        "T",
        r"TOOL RESPONSE:\s*\n-{3,}",
        "TOOL RESPONSE: \n---------------------\n42 rows\n\nUSER'S INPUT\n--------------------\n\nOkay, so what is the "
        "response to my last comment?",
    ),
    Frame(
        "SWE-agent",
        FrameKind.RESULT,
        "",
        "",
        "Found 3 matches in /app\n\n(Open file: n/a)\n(Current directory: /app)\nbash-$",
        closing=r"\((?:Current directory|Interactive session): [^\n]*\)\nbash-\$\Z",
    ),
    Frame(
        "aider commit",
        FrameKind.RESULT,
        "I",
        r"I committed the changes with git hash [0-9a-f]{6,40} & commit msg:",
        "I committed the changes with git hash 1a2b3c4 & commit msg: fix: typo",
    ),
    Frame(
        "aider check",
        FrameKind.RESULT,
        "#",
        r"# (?:Fix any errors below, if possible\.|\d+ SEARCH/REPLACE blocks? failed to match)",
        "# Fix any errors below, if possible.\n\n## Running: flake8 app.py\n\napp.py:1:1 F821 undefined name",
    ),
    Frame(
        "aider command",
        FrameKind.RESULT,
        "I",
        r"I ran this command:\s*\n[^\n]{1,300}\n\s*And got this output:",
        "I ran this command:\n\npytest\n\nAnd got this output:\n\n1 failed",
    ),
    # Results that a person could paste.
    Frame(
        "observation",
        FrameKind.RESULT,
        "Oo观",
        r"(?:(?i:observations?)(?: \d+)?|观察(?:结果)?)\s{0,3}[:：][^\S\n]*\n",
        "Observation:\nExecution logs:\nLast output from code snippet:\n42",
        Trust.REPEATED,
    ),
    Frame(
        "observation in a line",
        FrameKind.RESULT,
        "Oo观",
        r"(?:(?i:observations?)(?: \d+)?|观察(?:结果)?)\s{0,3}[:：]",
        "Observation: 42 rows",
        Trust.ACTED,
    ),
    Frame(
        "named result",
        FrameKind.RESULT,
        "[TtFfCcAaEeSs工执命代",
        r"\[?(?i:(?:tool|function|command|action|code|execution|step)(?: \d+)? (?:results?|outputs?|responses?|logs?))"
        r"(?: (?:of|for|from) [^\n:]{1,100}| \([^\n()]{1,100}\))?\]?\s{0,3}[:：\n]"
        r"|\[(?i:result of) [^\n\]]{1,200}\]|(?:工具|执行|命令|代码)(?:调用)?(?:结果|输出|返回)\s{0,3}[:：]",
        "Tool output: 42 rows",
        Trust.REPEATED,
    ),
    Frame(
        "plain result",
        FrameKind.RESULT,
        "RrOoEeSs",
        r"(?i:results?|outputs?|error|stdout|stderr)[:：]",
        "Error:\nNo",
        Trust.ACTED,
    ),
)

OURS = re.compile(rf"\s*{FRAMES[0].opening}")
#: For each first character, one pattern with the openings of all frames that begin with it; the group name tells which
#: frame matched. Most messages by people begin with none of these characters and cost one dictionary lookup.
STARTS = "".join(sorted({start for frame in FRAMES for start in frame.starts}))
OPENINGS = {
    start: re.compile(
        "|".join(f"(?P<f{number}>{frame.opening})" for number, frame in enumerate(FRAMES) if start in frame.starts)
    )
    for start in STARTS
}
#: Frames recognised by their end, and the last character that they all share.
ENDED = [number for number, frame in enumerate(FRAMES) if not frame.starts]
LAST = "$"
CLOSINGS = {number: re.compile(frame.closing) for number, frame in enumerate(FRAMES) if frame.closing}
#: A user's words inside a client's frame: answers, feedback, the task itself.
USER_SPEAKS = re.compile(r"<(?:feedback|answer|user_message|user_query|user_feedback|task)>")
#: smolagents sends the next task in one message with the last result, after it; the task may be long.
NEXT_TASK = "\nNew task:\n"

#: How an assistant's text calls a tool when there is no tool role.
ACTION = re.compile(
    r"^[*_#\s]{0,4}(?:Thoughts?|Action|Action Input|思考|行动)\**(?: \d+)?\s{0,3}[:：]"
    r"|<end_code>|^<code>|^Calling tools:\s*\n\["
    r"|<(?:tool_call|function_calls?|invoke|tool_use|tool_code)\b|<function=|<execute_\w+>"
    r'|^(?:```(?:json)?\s*\n)?\s*\{\s*"(?:action|tool|tool_name|tool_calls?|function|thoughts?|command|name)"\s*:'
    r"|</(?:[a-z]+_)+[a-z]+>\s*\Z",
    re.IGNORECASE | re.MULTILINE,
)

ACTIONS_INSIDE = ("\nAction:", "\nThought:", "<tool_call>", "<function=")  # after long thoughts, before long arguments
COMMON_ACTIONS = ("Thought:", "Action:", "THOUGHT:", "<tool_call>", "<code>")  # cheap check before the search

#: Words of a message that only says to continue.
NUDGES = re.compile(
    r"(?:(?:yes|y|yep|yeah|ok|okay|k|sure|right|correct|good|great|fine|perfect|nice|cool|thanks?|you|please|continue|go|on"
    r"|ahead|proceed|next|more|again|do|it|that|this|now|keep|going|carry|out|resume|retry|try|and|the|plan|sounds|looks"
    r"|lgtm|agreed|approved|confirm(?:ed)?|start|begin|run|same|as|before|working|work)[\s,.!…-]*)+"
)
NUDGE_ZH = re.compile(
    r"(?:(?:请|嗯|好|好的|好吧|行|可以|是|是的|对|对的|没错|继续|接着|下一步|开始|执行|吧|了|做|来|谢谢|同意|确认|再试|一次|干)[\s，。！、~]*)+"
)


def is_framed(text: str) -> bool:
    """Return whether Everlong added this text to the conversation."""
    return OURS.match(text) is not None


def is_nudge(message: Message) -> bool:
    """Whether a user message only says to continue. Example: "Yes, please continue." """
    text = message.text.strip()
    if not text or len(text) > LONGEST_NUDGE or any(not isinstance(part, Text) for part in message.parts):
        return False
    return NUDGES.fullmatch(text.lower()) is not None or NUDGE_ZH.fullmatch(text) is not None


def frames_in(messages: Sequence[Message]) -> dict[int, Framed]:
    """Return index -> frame for the user messages that a program wrote.

    Example: user, assistant "Thought: …⏎Action: …", user "Observation: 42" -> {2: a result that answers 1}
    """
    found: dict[int, Framed] = {}
    waiting: defaultdict[str, list[tuple[int, int, Trust]]] = defaultdict(list)  # name -> candidates that need repeats
    before = -1  # the last message that is neither system text nor in a frame
    for at, message in enumerate(messages):
        if message.role is Role.SYSTEM:
            continue
        if message.role is not Role.USER:
            before = at
            continue
        frame = _frame_of(message)
        answers = before if before >= 0 and messages[before].role is Role.ASSISTANT else -1
        if isinstance(frame, Frame) and frame.kind is not FrameKind.RESULT:
            found[at] = Framed(frame.kind, frame.name)
        elif frame is None or answers < 0:
            before = at
        elif isinstance(frame, Frame) and (frame.trust is Trust.ALONE or _acts(messages[answers])):
            found[at] = Framed(FrameKind.RESULT, frame.name, answers)
        else:
            name, trust = (frame.name, frame.trust) if isinstance(frame, Frame) else (frame, Trust.ACTED)
            waiting[name].append((at, answers, trust))
            before = at
    if waiting:
        _repeated(messages, found, waiting)
    return found


def said_by_users(messages: Sequence[Message]) -> Iterator[str]:
    """Yield the texts that users wrote, newest first, without user messages by tools, clients or Everlong."""
    frames = frames_in(messages)
    for at in range(len(messages) - 1, -1, -1):
        text = user_text(messages[at])
        if text and at not in frames:
            yield text


def _repeated(
    messages: Sequence[Message], found: dict[int, Framed], waiting: dict[str, list[tuple[int, int, Trust]]]
) -> None:
    """Add the messages that count as results because the same frame is repeated."""
    known = Counter(framed.name for framed in found.values())
    for name, places in waiting.items():
        if len(places) + known[name] < TELLING:
            continue
        for at, answers, trust in places:
            if trust is Trust.REPEATED or (name not in NAMES and _acts(messages[answers])):
                found[at] = Framed(FrameKind.RESULT, name, answers)


NAMES = frozenset(frame.name for frame in FRAMES)


def _frame_of(message: Message) -> Frame | str | None:
    """Return the frame of a user message, or its first line if that may be an unknown frame."""
    parts = message.parts
    if len(parts) == 1 and isinstance(parts[0], Text):
        frame = _frame_of_text(parts[0].text)
        is_result = frame is not None and (isinstance(frame, str) or frame.kind is FrameKind.RESULT)
        return None if is_result and _user_speaks(parts[0].text) else frame
    first: Frame | str | None = None
    texts = [part.text for part in message.parts if isinstance(part, Text) and part.text and not part.text.isspace()]
    for text in texts:
        frame = _frame_of_text(text)
        if isinstance(frame, Frame) and frame.kind is not FrameKind.RESULT:
            first = first or frame
            continue
        if frame is None:
            return None
        return None if any(map(_user_speaks, texts)) else frame
    return first


def _frame_of_text(text: str) -> Frame | str | None:
    start = text[:1]
    if (
        start not in OPENINGS
        and not start.isspace()
        and text[-1:] != LAST
        and text.find("\n", 0, LONGEST_HEADER + 1) < 0
    ):
        return None  # true for nearly every message by a person
    head = text[:LOOKED_AT].lstrip()
    openings = OPENINGS.get(head[:1])
    found = openings.match(head) if openings is not None else None
    if found is not None and found.lastgroup is not None:
        number = int(found.lastgroup[1:])
        closing = CLOSINGS.get(number)
        if closing is None or closing.search(text[-LOOKED_AT:]):
            return FRAMES[number]
        return None
    if text[-1:] == LAST:
        end = text[-LOOKED_AT:]
        return next((FRAMES[number] for number in ENDED if CLOSINGS[number].search(end)), None)
    return _header(head)


def _header(head: str) -> str | None:
    """Return the first line, with each number as 0, if it may be an unknown frame."""
    end = head.find("\n", 0, LONGEST_HEADER + 1)
    line = head[:end].rstrip() if end > 0 else ""
    sided = (line[:1], line[-1:]) in (("[", "]"), ("<", ">"))
    return re.sub(r"\d+", "0", line) if sided or (len(line) > 1 and line[-1] in ":：") else None


def _user_speaks(text: str) -> bool:
    if NEXT_TASK in text or text.startswith(NEXT_TASK[1:]):
        return True
    return USER_SPEAKS.search(text, 0, LOOKED_AT) is not None or USER_SPEAKS.search(text[-LOOKED_AT:]) is not None


def _acts(message: Message) -> bool:
    """Whether an assistant message calls a tool, with a tool call or in text that a client parses."""
    if message.calls:
        return True
    text = message.text
    if text.startswith(COMMON_ACTIONS):
        return True
    if len(text) <= 2 * ACTION_LOOKED_AT:
        return ACTION.search(text) is not None
    edges = (text[:ACTION_LOOKED_AT], text[-ACTION_LOOKED_AT:])
    return any(map(ACTION.search, edges)) or any(sign in text for sign in ACTIONS_INSIDE)
