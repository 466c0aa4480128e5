"""Small sessions of every format and version, written for the tests: the same errand told in each of them."""

from types import ModuleType
from typing import NamedTuple

from everlong.core import JsonObject
from everlong.wire.sessions.agents import claude_code, codex, nanobot, pi

TIME = "2026-03-01T09:00:00.000Z"


class Sample(NamedTuple):
    name: str
    module: ModuleType
    lines: list[JsonObject]


# --- pi ------------------------------------------------------------------------------------------

PI_USAGE: JsonObject = {
    "input": 1,
    "output": 2,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 3,
    "cost": {"total": 0.1},
}


def pi_user(text: str, **entry: object) -> JsonObject:
    return pi_entry({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}, **entry)


def pi_call(call: str, **entry: object) -> JsonObject:
    blocks = [
        {"type": "thinking", "thinking": "I should look.", "thinkingSignature": "sig"},
        {"type": "text", "text": "Let me look."},
        {"type": "toolCall", "id": call, "name": "read", "arguments": {"path": "a.py"}, "partialJson": "{"},
    ]
    body = {"role": "assistant", "content": blocks, "api": "x", "provider": "p", "model": "model-one"}
    return pi_entry(body | {"usage": PI_USAGE, "stopReason": entry.pop("stop", "toolUse"), "timestamp": 2}, **entry)


def pi_result(call: str, text: str, **entry: object) -> JsonObject:
    content = [{"type": "text", "text": text}]
    body = {"role": "toolResult", "toolCallId": call, "toolName": "read", "content": content, "isError": False}
    return pi_entry(body | {"timestamp": 3, "details": {"lines": 1}}, **entry)


def pi_said(text: str, **entry: object) -> JsonObject:
    body = {"role": "assistant", "content": [{"type": "text", "text": text}], "model": "model-two"}
    return pi_entry(body | {"usage": PI_USAGE, "stopReason": "stop", "timestamp": 4}, **entry)


def pi_entry(message: dict[str, object], **entry: object) -> JsonObject:
    return {"type": "message", "timestamp": TIME, **entry, "message": message}


PI_1: list[JsonObject] = [
    {"type": "session", "id": "s", "timestamp": TIME, "cwd": "/w", "provider": "p", "modelId": "model-zero"},
    {"type": "thinking_level_change", "timestamp": TIME, "thinkingLevel": "high"},
    pi_user("old question"),
    pi_said("old answer"),
    pi_user("new question"),
    {"type": "compaction", "timestamp": TIME, "summary": "We spoke.", "firstKeptEntryIndex": 4, "tokensBefore": 9},
    pi_call("c1"),
    pi_result("c1", "content of a.py"),
    pi_said("It says hello."),
]

PI_2: list[JsonObject] = [
    {"type": "session", "version": 2, "id": "s", "timestamp": TIME, "cwd": "/w"},
    pi_user("question", id="a1", parentId=None),
    pi_entry(
        {"role": "hookMessage", "customType": "note", "content": "from a hook", "display": True}, id="a2", parentId="a1"
    ),
    pi_said("answer", id="a3", parentId="a2"),
]

PI_3: list[JsonObject] = [
    {"type": "session", "version": 3, "id": "s", "timestamp": TIME, "cwd": "/w", "parentSession": "/other"},
    {"type": "model_change", "id": "00", "parentId": None, "timestamp": TIME, "provider": "p", "modelId": "model-zero"},
    pi_user("question", id="01", parentId="00"),
    pi_said("a road not taken", id="02", parentId="01"),
    {"type": "branch_summary", "id": "03", "parentId": "01", "timestamp": TIME, "fromId": "02", "summary": "We tried."},
    pi_call("c1", id="04", parentId="03"),
    pi_result("c1", "content of a.py", id="05", parentId="04"),
    {"type": "custom", "id": "06", "parentId": "05", "timestamp": TIME, "customType": "state", "data": {"n": 1}},
    {
        "type": "custom_message",
        "id": "07",
        "parentId": "06",
        "timestamp": TIME,
        "customType": "note",
        "content": "remember the tests",
        "display": False,
    },
    pi_entry(
        {"role": "bashExecution", "command": "make", "output": "error", "exitCode": 2, "cancelled": False},
        id="08",
        parentId="07",
    ),
    {
        "type": "compaction",
        "id": "09",
        "parentId": "08",
        "timestamp": TIME,
        "summary": "# Goal\nRead a.py",
        "firstKeptEntryId": "07",
        "tokensBefore": 99,
        "details": {"readFiles": ["a.py"]},
    },
    pi_said("It says hello.", id="10", parentId="09"),
    {"type": "label", "id": "11", "parentId": "10", "timestamp": TIME, "targetId": "10", "label": "good"},
    {"type": "session_info", "id": "12", "parentId": "11", "timestamp": TIME, "name": "reading"},
]

# --- Claude Code ---------------------------------------------------------------------------------


def claude_line(name: str, parent: str | None, kind: str, message: JsonObject, **fields: object) -> JsonObject:
    shared: JsonObject = {
        "cwd": "/w",
        "sessionId": "s",
        "version": "2.1.0",
        "gitBranch": "main",
        "userType": "external",
    }
    place: JsonObject = {"uuid": name, "parentUuid": parent, "isSidechain": False, "type": kind, "timestamp": TIME}
    return {**shared, **place, "message": message, **fields}


def claude_user(name: str, parent: str | None, text: str, **fields: object) -> JsonObject:
    return claude_line(name, parent, "user", {"role": "user", "content": text}, **fields)


def claude_reply(name: str, parent: str, reply: str, block: JsonObject) -> JsonObject:
    body: JsonObject = {"id": reply, "type": "message", "role": "assistant", "model": "claude-x", "content": [block]}
    usage: JsonObject = {"input_tokens": 3, "output_tokens": 4}
    return claude_line(name, parent, "assistant", body | {"stop_reason": None, "usage": usage}, requestId="req")


def claude_call(name: str, parent: str, reply: str, call: str) -> JsonObject:
    return claude_reply(name, parent, reply, {"type": "tool_use", "id": call, "name": "Read", "input": {"path": call}})


def claude_result(name: str, parent: str, call: str, text: str) -> JsonObject:
    block: JsonObject = {"type": "tool_result", "tool_use_id": call, "content": text}
    message: JsonObject = {"role": "user", "content": [block]}
    return claude_line(name, parent, "user", message, toolUseResult={"stdout": text})


CLAUDE: list[JsonObject] = [
    {"type": "summary", "summary": "Reading files", "leafUuid": "u9"},
    {
        "type": "file-history-snapshot",
        "messageId": "u1",
        "snapshot": {"trackedFileBackups": {}},
        "isSnapshotUpdate": False,
    },
    claude_user("u1", None, "read both files"),
    claude_reply("u2", "u1", "m1", {"type": "thinking", "thinking": "Two files.", "signature": "sig"}),
    claude_reply("u3", "u2", "m1", {"type": "text", "text": "I read both."}),
    claude_call("u4", "u3", "m1", "t1"),
    claude_result("u5", "u4", "t1", "first file"),
    claude_call("u6", "u4", "m1", "t2"),
    claude_user("s1", None, "a sub-agent's task", isSidechain=True),
    {
        "type": "progress",
        "uuid": "p1",
        "parentUuid": "u6",
        "isSidechain": False,
        "data": {"type": "hook"},
        "timestamp": TIME,
    },
    claude_result("u7", "u6", "t2", "second file"),
    claude_reply("u8", "u7", "m2", {"type": "text", "text": "Both are short."}),
    {"type": "queue-operation", "operation": "enqueue", "sessionId": "s", "timestamp": TIME, "content": "x"},
]

CLAUDE_COMPACTED: list[JsonObject] = [
    claude_user("u1", None, "long work"),
    claude_reply("u2", "u1", "m1", {"type": "text", "text": "done with it"}),
    {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b1",
        "parentUuid": None,
        "logicalParentUuid": "u2",
        "isSidechain": False,
        "content": "",
        "compactMetadata": {"trigger": "auto", "preTokens": 160000},
    },
    claude_user("u3", "b1", "This is what happened before.", isCompactSummary=True, isVisibleInTranscriptOnly=True),
    claude_user("u4", "u3", "go on"),
    claude_reply("u5", "u4", "m2", {"type": "text", "text": "going on"}),
]

# --- Codex ---------------------------------------------------------------------------------------


def codex_line(kind: str, payload: JsonObject) -> JsonObject:
    return {"timestamp": TIME, "type": kind, "payload": payload}


def codex_message(role: str, text: str) -> JsonObject:
    block = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": block, "text": text}]}


CODEX_ITEMS: list[JsonObject] = [
    codex_message("user", "read a.py"),
    {
        "type": "reasoning",
        "id": "rs1",
        "summary": [{"type": "summary_text", "text": "Look."}],
        "encrypted_content": "e",
    },
    {"type": "function_call", "id": "fc1", "name": "shell", "arguments": '{"command":["cat","a.py"]}', "call_id": "k1"},
    {"type": "custom_tool_call", "status": "completed", "call_id": "k2", "name": "apply_patch", "input": "*** Begin"},
    {"type": "function_call_output", "call_id": "k1", "output": "content of a.py"},
    {"type": "custom_tool_call_output", "call_id": "k2", "output": "Done"},
    codex_message("assistant", "It says hello."),
]

CODEX: list[JsonObject] = [
    codex_line("session_meta", {"id": "s", "timestamp": TIME, "cwd": "/w", "base_instructions": {"text": "You code."}}),
    codex_line("response_item", codex_message("user", "<environment_context>here</environment_context>")),
    codex_line("turn_context", {"cwd": "/w", "model": "gpt-x", "effort": "high"}),
    *(codex_line("response_item", item) for item in CODEX_ITEMS),
    codex_line("event_msg", {"type": "agent_message", "message": "It says hello."}),
    codex_line("response_item", {"type": "ghost_snapshot", "ghost_commit": {"id": "g"}}),
    codex_line(
        "compacted",
        {
            "message": "",
            "replacement_history": [codex_message("user", "read a.py"), codex_message("user", "We read it.")],
        },
    ),
    codex_line("response_item", codex_message("user", "and b.py")),
]

CODEX_OLD: list[JsonObject] = [
    {"id": "s", "timestamp": TIME, "instructions": None, "git": {"branch": "main"}},
    {"record_type": "state"},
    *CODEX_ITEMS,
    {"record_type": "state"},
]

# --- nanobot -------------------------------------------------------------------------------------

NANOBOT_TURN: list[JsonObject] = [
    {"role": "user", "content": "look at this", "timestamp": "2026-03-01T09:00:00.123456", "media": ["media/cat.png"]},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "n1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}],
        "reasoning_content": "A cat.",
        "thinking_blocks": [{"type": "thinking", "thinking": "A cat.", "signature": "sig"}],
        "timestamp": "2026-03-01T09:00:01",
    },
    {"role": "tool", "tool_call_id": "n1", "name": "read", "content": "text", "timestamp": "2026-03-01T09:00:02"},
    {"role": "assistant", "content": "a cat", "timestamp": "2026-03-01T09:00:03"},
]

NANOBOT: list[JsonObject] = [
    {
        "_type": "metadata",
        "key": "cli:direct",
        "created_at": "2026-03-01T09:00:00",
        "updated_at": "2026-03-01T09:00:03",
        "metadata": {"title": "cats"},
        "last_consolidated": 0,
    },
    *NANOBOT_TURN,
]

NANOBOT_NEWER: list[JsonObject] = [
    {
        "_type": "metadata",
        "key": "cli:direct",
        "created_at": "2026-03-01T09:00:00",
        "updated_at": "2026-03-01T09:00:03",
        "metadata": {"_last_summary": {"text": "We saw a cat.", "last_active": "2026-03-01T09:00:03"}},
        "last_consolidated": 4,
        "last_archived": 2,
    },
    {"_type": "provider_state", "state": {"kind": "responses", "provider": "p", "model": "gpt-x", "payload": [1]}},
    *NANOBOT_TURN,
    {"role": "user", "content": "/help", "_command": True},
    {"role": "user", "content": "and a dog?", "cli_apps": [{"name": "dogs"}], "injected_event": "cron"},
]

LINE_SESSIONS = [
    Sample("pi version 1", pi, PI_1),
    Sample("pi version 2", pi, PI_2),
    Sample("pi version 3", pi, PI_3),
    Sample("Claude Code", claude_code, CLAUDE),
    Sample("Claude Code, compacted", claude_code, CLAUDE_COMPACTED),
    Sample("Codex", codex, CODEX),
    Sample("Codex, items bare", codex, CODEX_OLD),
    Sample("nanobot 0.3.0", nanobot, NANOBOT),
    Sample("nanobot, newer", nanobot, NANOBOT_NEWER),
]

# --- Chatbox -------------------------------------------------------------------------------------


def chatbox_text(name: str, role: str, text: str, **fields: object) -> JsonObject:
    return {"id": name, "role": role, "contentParts": [{"type": "text", "text": text}], **fields}


CHATBOX_RUN: JsonObject = {
    "id": "m2",
    "role": "assistant",
    "model": "gpt-x",
    "timestamp": 1_772_355_600_000,
    "tokenCountMap": {"default": 12},
    "contentParts": [
        {"type": "reasoning", "text": "Search first.", "duration": 900},
        {"type": "text", "text": "I search."},
        {
            "type": "tool-call",
            "state": "result",
            "toolCallId": "x1",
            "toolName": "web",
            "args": {"q": 1},
            "result": {"n": 2},
        },
        {
            "type": "tool-call",
            "state": "error",
            "toolCallId": "x2",
            "toolName": "web",
            "args": {"q": 2},
            "result": "down",
        },
        {"type": "info", "text": "a notice", "values": {"n": 1}},
        {"type": "text", "text": "Found it."},
    ],
}

CHATBOX: JsonObject = {
    "id": "s1",
    "name": "Searching",
    "type": "chat",
    "starred": True,
    "settings": {"provider": "openai", "modelId": "gpt-x"},
    "messages": [
        chatbox_text("m0", "system", "You are kind."),
        {"id": "m1", "role": "user", "content": "find it", "files": [{"id": "f", "name": "list.pdf"}]},
        CHATBOX_RUN,
        {"id": "m3", "role": "user", "contentParts": [{"type": "image", "storageKey": "k", "ocrResult": "a cat"}]},
        chatbox_text("m4", "assistant", "A cat.", generating=False),
        chatbox_text("m5", "user", "and now?"),
        chatbox_text("m6", "assistant", "We found it and saw a cat.", isSummary=True),
        {"id": "m7", "role": "assistant", "contentParts": [], "generating": True},
    ],
    "threads": [{"id": "t1", "name": "before", "messages": [chatbox_text("o1", "user", "earlier")], "createdAt": 1}],
    "compactionPoints": [{"summaryMessageId": "m6", "boundaryMessageId": "m4", "createdAt": 5}],
    "messageForksHash": {"m1": {"position": 0, "lists": [], "createdAt": 1}},
}


# --- trees: ChatGPT, Open WebUI, LibreChat -------------------------------------------------------


def chatgpt_node(
    name: str, parent: str | None, children: list[str], role: str, content: JsonObject, **more: object
) -> JsonObject:
    message: JsonObject = {
        "id": name,
        "author": {"role": role, "name": more.pop("tool", None), "metadata": {}},
        "create_time": 1_772_355_600.5,
        "content": content,
        "status": "finished_successfully",
        "recipient": more.pop("recipient", "all"),
        "metadata": {"model_slug": "gpt-x"} if role == "assistant" else {},
        **more,
    }
    return {"id": name, "message": message, "parent": parent, "children": children}


def chatgpt_words(*parts: object) -> JsonObject:
    return {"content_type": "text", "parts": list(parts)}


CHATGPT: JsonObject = {
    "id": "conversation-1",
    "conversation_id": "conversation-1",
    "title": "Seven boats",
    "create_time": 1_772_355_600.0,
    "update_time": 1_772_355_700.0,
    "is_archived": False,
    "current_node": "g8",
    "mapping": {
        "g0": {"id": "g0", "message": None, "parent": None, "children": ["g1"]},
        "g1": chatgpt_node("g1", "g0", ["g2"], "system", chatgpt_words("")),
        "g2": chatgpt_node("g2", "g1", ["g3", "g9"], "user", chatgpt_words("How many boats?")),
        "g3": chatgpt_node(
            "g3",
            "g2",
            ["g4"],
            "assistant",
            {"content_type": "thoughts", "thoughts": [{"summary": "Count", "content": "I count them."}]},
        ),
        "g4": chatgpt_node(
            "g4", "g3", ["g5"], "assistant", {"content_type": "code", "text": "len(boats)"}, recipient="python"
        ),
        "g5": chatgpt_node(
            "g5", "g4", ["g6"], "tool", {"content_type": "execution_output", "text": "7"}, tool="python"
        ),
        "g6": chatgpt_node("g6", "g5", ["g7"], "assistant", chatgpt_words("Seven.")),
        "g7": chatgpt_node(
            "g7",
            "g6",
            ["g8"],
            "user",
            {"content_type": "multimodal_text", "parts": [{"asset_pointer": "file-1"}, "And this one?"]},
        ),
        "g8": chatgpt_node("g8", "g7", [], "assistant", chatgpt_words("Eight.")),
        "g9": chatgpt_node("g9", "g2", [], "assistant", chatgpt_words("About ten.")),
    },
}

OPEN_WEBUI: JsonObject = {
    "id": "chat-1",
    "user_id": "u",
    "title": "Seven boats",
    "created_at": 1_772_355_600,
    "updated_at": 1_772_355_700,
    "archived": True,
    "chat": {
        "title": "Seven boats",
        "models": ["llama-x"],
        "history": {
            "currentId": "o3",
            "messages": {
                "o1": {
                    "id": "o1",
                    "parentId": None,
                    "childrenIds": ["o2", "o3"],
                    "role": "user",
                    "content": "How many boats?",
                    "timestamp": 1_772_355_600,
                    "files": [{"type": "image", "url": "data:image/png;base64,iVBORw0KGgo="}],
                },
                "o2": {"id": "o2", "parentId": "o1", "childrenIds": [], "role": "assistant", "content": "About ten."},
                "o3": {"id": "o3", "parentId": "o1", "childrenIds": [], "role": "assistant", "content": "Seven."},
            },
        },
    },
}

LIBRECHAT: JsonObject = {
    "conversationId": "libre-1",
    "title": "Seven boats",
    "endpoint": "openAI",
    "options": {"model": "gpt-x"},
    "recursive": False,
    "messages": [
        {
            "messageId": "l1",
            "parentMessageId": "00000000-0000-0000-0000-000000000000",
            "isCreatedByUser": True,
            "sender": "User",
            "text": "How many boats?",
            "createdAt": TIME,
        },
        {
            "messageId": "l2",
            "parentMessageId": "l1",
            "isCreatedByUser": False,
            "sender": "GPT",
            "text": "About ten.",
            "createdAt": TIME,
        },
        {
            "messageId": "l3",
            "parentMessageId": "l1",
            "isCreatedByUser": False,
            "sender": "GPT",
            "text": "",
            "createdAt": TIME,
            "content": [
                {"type": "think", "think": "Count."},
                {
                    "type": "tool_call",
                    "tool_call": {"id": "t1", "name": "count", "args": "{}", "output": "7"},
                },
                {"type": "text", "text": {"value": "Seven."}},
            ],
        },
    ],
}

EVERLONG: JsonObject = {
    "everlong": "thread",
    "version": 1,
    "id": "app-1",
    "title": "Seven boats",
    "created": TIME,
    "updated": TIME,
    "archived": False,
    "settings": {},
    "metadata": {},
    "pins": [{"order": 0, "text": ""}],
    "rows": [
        {
            "id": "r0",
            "time": TIME,
            "kind": "message",
            "entry": {"role": "user", "parts": [{"type": "text", "text": "How many boats?"}]},
        },
        {
            "id": "r1",
            "time": TIME,
            "kind": "message",
            "entry": {"role": "assistant", "parts": [{"type": "text", "text": "Seven."}]},
        },
        {"id": "r2", "time": TIME, "kind": "point", "entry": {"boundary": 1, "summary": [], "reason": "summary"}},
        {"id": "r3", "time": TIME, "kind": "withdrawal", "entry": {"point": 2}},
    ],
}
