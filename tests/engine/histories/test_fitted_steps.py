"""Steps stay steps: after a compaction the newest ones are messages with their calls, at every budget from 8k up."""

import json
from typing import Any

from everlong import Engine, Settings, count, fit, open_store
from everlong.core import Message, ToolResult, ref_of
from everlong.engine.contracts import Call
from everlong.wire import problems, valid
from tests.core.build import calls, result, system, user
from tests.gateway.raw_upstream import Talk, response
from tests.gateway.running import RunningGateway
from tests.gateway.talking import PATHS, RawClient, body_of, talk_through, whole_of

MODEL = "gpt-4o"
Chat = dict[str, Any]


def page(number: int, lines: int) -> str:
    return "\n".join(f"def function_{number}_{line}(value): return value * {number + line}" for line in range(lines))


def step(number: int, lines: int, *, thought: str = "") -> list[Chat]:
    function = {"name": "read_file", "arguments": json.dumps({"path": f"src/module_{number}.py"})}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": thought or None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": page(number, lines)},
    ]


def work(*lines: int) -> list[Chat]:
    """An agent's history: a step for each figure, whose result has so many lines (a line has 17 tokens)."""
    messages: list[Chat] = [
        {"role": "system", "content": "You are a careful engineer."},
        {"role": "user", "content": "Find out what function_3_7 does and fix it."},
    ]
    for number, count_of in enumerate(lines):
        messages += step(number, count_of, thought=f"Next I look at module {number}.")
    return messages


def tokens(message: Chat) -> int:
    return count([message], model=MODEL)


def test_the_three_newest_steps_are_there_with_their_calls() -> None:
    messages = work(*[300] * 12, 10, 400, 200, 12)
    fitted = fit(messages, model=MODEL, budget=8_000)
    assert fitted.tokens <= 8_000
    assert problems("openai-chat", {"messages": fitted.messages}) == []
    sent = fitted.messages[-6:]
    given = messages[-6:]
    assert [message for message in sent if message["role"] == "assistant"] == given[::2]
    assert [message["tool_call_id"] for message in sent[1::2]] == ["c13", "c14", "c15"]
    assert sent[-1] == given[-1]
    for short, whole in zip(sent[1:4:2], given[1:4:2], strict=True):
        assert tokens(short) >= tokens(whole) / 4


def test_a_shortened_result_has_whole_lines_and_the_reference_of_all_of_it() -> None:
    messages = work(*[300] * 12, 400, 200, 12)
    fitted = fit(messages, model=MODEL, budget=8_000)
    short = next(message["content"] for message in fitted.messages if message.get("tool_call_id") == "c12")
    whole = messages[-5]["content"]
    first, *lines = short.splitlines()
    ref = first.partition("ref ")[2].rstrip("]")
    assert fitted.original(ref).decode() == whole
    pieces = [line for line in lines if not line.startswith("[… line ")]
    assert pieces
    assert set(pieces) <= set(whole.splitlines())
    assert pieces == sorted(pieces, key=whole.splitlines().index)
    jumps = [int(line.removeprefix("[… line ").rstrip("]")) for line in lines if line.startswith("[… line ")]
    for jump in jumps:
        shown = lines[lines.index(f"[… line {jump}]") + 1]
        assert whole.splitlines()[jump - 1] == shown


def test_what_the_work_is_about_is_what_stays_of_a_large_result() -> None:
    messages = work(*[100] * 6, 500, 12, 12)
    messages[-1]["content"] = "NameError: function_6_377 is not defined"
    messages += [{"role": "assistant", "content": "I must look at function_6_377 again."}]
    messages += [{"role": "user", "content": "Yes, why is function_6_377 not defined?"}]
    fitted = fit(messages, model=MODEL, budget=8_000)
    result = next(message["content"] for message in fitted.messages if message.get("tool_call_id") == "c6")
    assert "def function_6_377(value)" in result


def test_files_written_in_full_give_way_only_where_there_is_no_other_way() -> None:
    messages = work(40, 40)
    for number in (7, 8, 9):
        call, answer = step(number, 1)
        call["tool_calls"][0]["function"]["arguments"] = json.dumps(
            {"path": f"m{number}.py", "content": page(number, 300)}
        )
        messages += [call, answer]
    roomy, tight = (fit(messages, model=MODEL, budget=budget) for budget in (17_000, 8_000))
    assert roomy.messages[-6:] == messages[-6:]
    assert tight.tokens <= 8_000
    written = [json.loads(message["tool_calls"][0]["function"]["arguments"]) for message in tight.messages[-6::2]]
    assert [arguments["path"] for arguments in written] == ["m7.py", "m8.py", "m9.py"]
    assert written[0]["content"]["omitted"]["characters"] == len(page(7, 300))
    assert written[2]["content"] == page(9, 300)


def test_several_results_in_one_message_are_shortened_each_by_itself() -> None:
    messages: list[Chat] = [{"role": "user", "content": "Compare the modules."}]
    for number in range(8):
        uses = [
            {"type": "tool_use", "id": f"t{number}{side}", "name": "read", "input": {"path": f"{number}{side}.py"}}
            for side in "ab"
        ]
        messages.append({"role": "assistant", "content": uses})
        parts = [
            {"type": "tool_result", "tool_use_id": f"t{number}{side}", "content": page(number * 10 + at, lines)}
            for at, (side, lines) in enumerate((("a", 250), ("b", 8)))
        ]
        messages.append({"role": "user", "content": parts})
    messages += [{"role": "assistant", "content": "Read."}, {"role": "user", "content": "And function_70_9?"}]
    fitted = fit(messages, model="claude-sonnet-4-5", budget=8_000)
    sent = [part for message in fitted.messages for part in message["content"] if isinstance(part, dict)]
    results = {part["tool_use_id"]: part for part in sent if part["type"] == "tool_result"}
    for number in (6, 7):
        assert "excerpts:" in json.dumps(results[f"t{number}a"])
        assert page(number * 10 + 1, 8) in json.dumps(results[f"t{number}b"]).replace("\\n", "\n")
        assert f"function_{number * 10 + 1}_" not in json.dumps(results[f"t{number}a"])


def test_the_engine_keeps_steps_beside_a_result_of_two_thirds_of_the_window() -> None:
    history: list[Message] = [system("Work carefully."), user("Find the leak.")]
    for number in range(20):
        history += [calls(f"c{number}"), result(f"c{number}", page(number, 120))]
    history += [calls("large"), result("large", page(99, 1_150))]
    engine = Engine(open_store("memory:"), settings=Settings(window=32_000)).blocking
    engine.append("t", history)
    sent = engine.prepare("t", Call(model=MODEL, max_tokens=1_000)).request.messages
    assert valid("openai-chat", sent)
    assert [call.id for message in sent[-6:] for call in message.calls] == ["c18", "c19", "large"]
    assert sum(isinstance(part, ToolResult) for message in sent[-6:] for part in message.parts) == 3


def test_through_the_gateway_the_newest_steps_arrive_as_calls_and_results() -> None:
    fmt = "openai-chat"
    messages = work(*[200] * 12, 1_150)
    sent: list[list[Chat]] = []

    async def script(talk: Talk, head: bytes, body: bytes) -> None:
        sent.append(json.loads(body)["messages"])
        await talk.say(response(whole_of(fmt)))

    async def client(gateway: RunningGateway) -> None:
        async with RawClient(gateway.port) as client:
            client.ask(PATHS[fmt], body_of(fmt, messages))
            status, _ = await client.head()
            assert status == 200

    talk_through(script, client, mode="trim", window=32_000)
    (request,) = sent
    assert count(request, model=MODEL) < 32_000
    assert request[-1]["tool_call_id"] == "c12"
    assert [call["id"] for message in request for call in message.get("tool_calls", ())][-3:] == ["c10", "c11", "c12"]


def test_every_original_is_behind_its_reference() -> None:
    fitted = fit(work(*[300] * 12, 10, 400, 200, 12), model=MODEL, budget=8_000)
    edits = [edit for edit in fitted.edits if edit.ref]
    assert any(edit.action.value == "shorten" for edit in edits)
    for edit in edits:
        assert ref_of(fitted.original(edit.ref or "")) == edit.ref
