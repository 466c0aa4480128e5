"""Replace tool results by placeholders, least important first, then oldest first.

Rules decide the priority, without a model: decisions and what the user asked to remember are HIGH, results that a query
can fetch again (reading, listing, searching) are LOW. Only the head and the tail of a long text count. Pins need no
rule: they are protected.
"""

import re
from enum import IntEnum

from everlong.compress.draft import Draft, Task, last_round_at
from everlong.compress.text.changes import Cause, Change, Origins, rewrite
from everlong.compress.text.tool_results import PlacedResult, placeholder, results_in, string_argument
from everlong.core import JsonText, Message, Role

__all__ = ["Priority", "priority", "priority_of", "result_priority"]

CAUSE = Cause("priority", "least important results first, oldest first among equals")

HEAD, TAIL = 2_000, 1_000  # characters of a text that count


class Priority(IntEnum):
    """The priority of a message: lower ones go first."""

    LOW = 0
    NORMAL = 1
    HIGH = 2


#: Tools that only read, by the names that agents give them: letters and digits, lower case.
QUERY_TOOLS = frozenset(
    {"read", "readfile", "readfiles", "readmanyfiles", "view", "viewfile", "openfile", "cat", "readurl"}
    | {"ls", "list", "listdir", "listdirectory", "listfiles", "tree", "glob", "find", "findfiles", "findbyname"}
    | {"grep", "grepsearch", "ripgrep", "search", "searchfiles", "filesearch", "searchfilecontent", "codebasesearch"}
    | {"websearch", "searchweb", "googlewebsearch", "webfetch", "fetch", "fetchurl"}
)
SHELL_TOOLS = frozenset(
    {
        "shell",
        "bash",
        "sh",
        "exec",
        "execute",
        "executeshell",
        "executecommand",
        "execcommand",
        "terminal",
        "localshell",
    }
    | {"runcommand", "runshell", "runshellcommand", "runterminalcmd", "runinterminal"}
)
COMMAND_KEYS = ("command", "cmd", "script", "code", "input")
QUERY_COMMAND = re.compile(
    r"(?:ls|ll|dir|cat|bat|head|tail|less|more|grep|egrep|rg|ag|find|fd|wc|file|stat|pwd|echo|which|type|tree|du|df|sort|"
    r"uniq|cut|nl|awk|jq|date|env|ps|cd|sed\s+-n|git\s+(?:status|log|diff|show|branch|blame|ls-files))(?![\w-])"
)
SHELL_PREFIX = re.compile(r"^\s*(?:/bin/)?(?:ba|z)?sh\s+-l?c\s+")
COMMAND_BREAKS = re.compile(r"&&|\|\||[;|\n]")
WRITES = re.compile(r"(?<![0-9&])>|>>|\bxargs\b|-delete\b|-exec\b|\$\(|`")

WEIGHTY_ZH = "决定|决策|待办|注意|重要|规则|约束|不要|必须|记住"
WEIGHTY_EN = r"\b(?:decid(?:e|ed|es|ing)|decision|todo|important|constraints?|must|remember|rules?)\b"
WEIGHTY: dict[Role, re.Pattern[str]] = {
    Role.TOOL: re.compile(f"{WEIGHTY_ZH}|{WEIGHTY_EN}", re.IGNORECASE),
    Role.USER: re.compile(
        rf"{WEIGHTY_ZH}|以后都|今后|一律|禁止|{WEIGHTY_EN}|\b(?:always|never|from now on|do not|don't)\b", re.IGNORECASE
    ),
    Role.ASSISTANT: re.compile(
        r"决定|决策|待办|架构|约束|\b(?:todo|decision|decided|architecture|constraints?)\b", re.I
    ),
}


def priority(draft: Draft, task: Task, *, keep_last_round: bool = True) -> Draft:
    """Replace results by placeholders, in order of (priority, age), until the draft is within the target.

    Example: an old test run that says "decision: …" and a new directory listing -> the listing goes first
    """
    if draft.total <= task.target:
        return draft
    spared = last_round_at(draft) if keep_last_round else len(draft.history)
    open_results = [found for found in results_in(draft, task.counter) if found.open and found.slot.at < spared]
    origins = Origins(draft)
    excess = draft.total - task.target
    changes: list[Change] = []
    for found in sorted(open_results, key=result_priority):  # stable: oldest first among equals
        if excess <= 0:
            break
        line = placeholder(found, origins, task)
        if line is not None:
            changes.append(line[0])
            excess -= line[1]
    return rewrite(draft, task, CAUSE, changes)


def priority_of(message: Message, tool: str = "", arguments: JsonText = "") -> Priority:
    """Return the priority of a message; for a tool result, `tool` and `arguments` are those of its call."""
    text = message.text
    if message.results:
        text = "\n".join((*(result.text for result in message.results), text))
        tool = tool or message.results[0].name
    return _priority(Role.TOOL if message.results else message.role, text, tool, arguments)


def result_priority(found: PlacedResult) -> Priority:
    """Return the priority of a result."""
    return _priority(Role.TOOL, found.text, found.tool, found.call.arguments if found.call else "")


def _priority(role: Role, text: str, tool: str, arguments: JsonText) -> Priority:
    if role is Role.SYSTEM:
        return Priority.HIGH
    if role is Role.TOOL and _only_looks(tool, arguments):
        return Priority.LOW  # whatever a file contains, it can be read again
    looked_at = text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"
    return Priority.HIGH if WEIGHTY[role].search(looked_at) else Priority.NORMAL


def _only_looks(tool: str, arguments: JsonText) -> bool:
    name = re.sub(r"[\W_]", "", re.split(r"__|[./:]", tool)[-1]).lower()  # mcp__files__read_file -> readfile
    if name in QUERY_TOOLS:
        return True
    if name not in SHELL_TOOLS:
        return False
    command = SHELL_PREFIX.sub("", string_argument(arguments, COMMAND_KEYS) or arguments)
    pieces = [piece.strip() for piece in COMMAND_BREAKS.split(command) if piece.strip()]
    return bool(pieces) and not WRITES.search(command) and all(map(QUERY_COMMAND.match, pieces))
