"""Small files of agents' work, written for the tests: the same errand told as each of the programs keeps it."""

from everlong.core import Json, JsonObject
from tests.wire.sessions.samples import TIME

MOMENT = 1_772_355_600_000
STEP: JsonObject = {"type": "step-start"}


def opencode_tool(call: str, status: str, **state: Json) -> JsonObject:
    body: JsonObject = {"status": status, "input": {"path": "a.py"}, **state}
    return {"id": f"part-{status}", "type": "tool", "callID": call, "tool": "read", "state": body}


OPENCODE: JsonObject = {
    "info": {"id": "ses_1", "title": "Boats", "directory": "/w", "time": {"created": MOMENT, "updated": MOMENT + 9}},
    "messages": [
        {
            "info": {"id": "msg_1", "role": "user", "time": {"created": MOMENT}},
            "parts": [
                {"type": "text", "text": "How many boats?"},
                {"type": "file", "filename": "a.py", "mime": "text/plain", "url": "file:///w/a.py"},
            ],
        },
        {
            "info": {"id": "msg_2", "role": "assistant", "time": {"created": MOMENT}, "modelID": "model-x"},
            "parts": [
                STEP,
                {"type": "reasoning", "text": "I should look."},
                {"type": "text", "text": "Let me look."},
                opencode_tool("c1", "completed", output="boats = 7"),
                opencode_tool("c1", "error", error="no such file"),
                {"type": "step-finish"},
                STEP,
                {"type": "patch", "files": ["/w/a.py"]},
                {"type": "text", "text": "Seven."},
            ],
        },
    ],
}

GEMINI_CLI: JsonObject = {
    "sessionId": "g-1",
    "projectHash": "abc",
    "startTime": TIME,
    "lastUpdated": TIME,
    "messages": [
        {"id": "m0", "timestamp": TIME, "type": "info", "content": "An update is there."},
        {"id": "m1", "timestamp": TIME, "type": "user", "content": [{"text": "How many"}, {"text": "boats?"}]},
        {
            "id": "m2",
            "timestamp": TIME,
            "type": "gemini",
            "content": "Let me look.",
            "model": "model-x",
            "thoughts": [{"subject": "Looking", "description": "I should look."}],
            "toolCalls": [
                {
                    "id": "c1",
                    "name": "read",
                    "args": {"path": "a.py"},
                    "status": "success",
                    "result": [{"functionResponse": {"id": "c1", "name": "read", "response": {"output": "boats = 7"}}}],
                }
            ],
        },
        {"id": "m3", "timestamp": TIME, "type": "gemini", "content": "Seven.", "model": "model-x"},
    ],
}

SWE_AGENT: JsonObject = {
    "environment": "boats",
    "info": {"exit_status": "submitted"},
    "trajectory": [{"action": "cat a.py\n", "observation": "boats = 7", "response": "I look.\n```\ncat a.py\n```"}],
    "history": [
        {"role": "system", "content": "You fix code.", "agent": "main"},
        {"role": "user", "content": "How many boats?", "agent": "main"},
        {
            "role": "assistant",
            "content": "I look.\n```\ncat a.py\n```",
            "thought": "I look.\n",
            "action": "cat a.py\n",
            "agent": "main",
        },
        {"role": "user", "content": "boats = 7", "agent": "main"},
        {"role": "assistant", "content": "Seven.", "thought": "Seven.", "action": "", "agent": "main"},
    ],
}
SWE_AGENT_STEPS: JsonObject = {
    "environment": "boats",
    "trajectory": [
        {"thought": "I look.", "action": "cat a.py\n", "observation": "boats = 7"},
        {"response": "Seven.", "thought": "Seven.", "action": "", "observation": ""},
    ],
}
SWE_AGENT_CALLS: JsonObject = {
    "history": [
        {"role": "system", "content": "You fix code.", "agent": "main", "message_type": "system_prompt"},
        {"role": "user", "content": [{"type": "text", "text": "How many boats?"}], "agent": "main"},
        {
            "role": "assistant",
            "content": "I look.",
            "action": "open a.py",
            "agent": "main",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "open", "arguments": '{"path": "a.py"}'}}
            ],
        },
        {"role": "tool", "content": "boats = 7", "agent": "main", "tool_call_ids": ["c1"]},
        {"role": "assistant", "content": "Seven.", "agent": "main"},
    ],
}


def copilot(kind: str, **data: Json) -> JsonObject:
    return {"type": kind, "data": data, "id": f"{kind}-{len(data)}", "timestamp": TIME, "parentId": None}


COPILOT: list[Json] = [
    copilot("session.start", sessionId="co-1", version=1),
    copilot("system.message", role="system", content="You fix code."),
    copilot("user.message", content="How many boats?"),
    copilot("hook.start", hookType="userPromptSubmitted"),
    copilot(
        "assistant.message",
        content="Let me look.",
        model="model-x",
        reasoningText="I should look.",
        toolRequests=[
            {"toolCallId": "c1", "name": "view", "arguments": {"path": "a.py"}},
            {"toolCallId": "c2", "name": "view", "arguments": {"path": "b.py"}},
        ],
    ),
    copilot("tool.execution_start", toolCallId="c1", toolName="view"),
    copilot("tool.execution_complete", toolCallId="c1", success=True, result={"content": "boats = 7"}),
    copilot("tool.execution_complete", toolCallId="c2", success=False, error={"message": "no such file"}),
    copilot("assistant.message", content="Seven.", model="model-x", toolRequests=[]),
]

OPENHANDS_OLDER: list[Json] = [
    {"id": 0, "source": "agent", "timestamp": TIME, "action": "system", "args": {"content": "You fix code."}},
    {"id": 1, "source": "user", "timestamp": TIME, "action": "message", "args": {"content": "How many boats?"}},
    {"id": 2, "source": "environment", "observation": "agent_state_changed", "content": "", "extras": {}},
    {"id": 3, "source": "agent", "action": "run", "args": {"command": "cat a.py", "thought": "Let me look."}},
    {"id": 4, "source": "agent", "observation": "run", "content": "boats = 7", "cause": 3, "extras": {}},
    {
        "id": 5,
        "source": "agent",
        "action": "edit",
        "args": {"path": "a.py", "thought": ""},
        "tool_call_metadata": {
            "tool_call_id": "c2",
            "function_name": "str_replace_editor",
            "model_response": {
                "choices": [{"message": {"tool_calls": [{"id": "c2", "function": {"arguments": '{"old_str": "7"}'}}]}}]
            },
        },
    },
    {
        "id": 6,
        "source": "agent",
        "observation": "edit",
        "content": "edited",
        "cause": 5,
        "tool_call_metadata": {"tool_call_id": "c2"},
    },
    {"id": 7, "source": "agent", "action": "message", "args": {"content": "Seven."}},
]
WORDS: list[Json] = [{"type": "text", "text": "Let me look."}]
OPENHANDS: list[Json] = [
    {"kind": "SystemPromptEvent", "source": "agent", "system_prompt": {"type": "text", "text": "You fix code."}},
    {
        "kind": "MessageEvent",
        "source": "user",
        "llm_message": {"role": "user", "content": [{"type": "text", "text": "How many boats?"}]},
    },
    {"kind": "ConversationStateUpdateEvent", "key": "stats", "value": {}},
    {
        "kind": "ActionEvent",
        "source": "agent",
        "thought": WORDS,
        "tool_name": "terminal",
        "tool_call_id": "c1",
        "tool_call": {"id": "c1", "name": "terminal", "arguments": '{"command": "cat a.py"}'},
    },
    {
        "kind": "ActionEvent",
        "source": "agent",
        "thought": [],
        "tool_name": "terminal",
        "tool_call_id": "c2",
        "tool_call": {"id": "c2", "name": "terminal", "arguments": '{"command": "cat b.py"}'},
    },
    {
        "kind": "ObservationEvent",
        "source": "environment",
        "tool_name": "terminal",
        "tool_call_id": "c1",
        "observation": {"kind": "ExecuteBashObservation", "content": [{"type": "text", "text": "boats = 7"}]},
    },
    {"kind": "AgentErrorEvent", "source": "agent", "tool_call_id": "c2", "error": "no such file"},
    {
        "kind": "MessageEvent",
        "source": "agent",
        "llm_message": {"role": "assistant", "content": [{"type": "text", "text": "Seven."}]},
    },
]
