"""Clients that ask their provider to shorten the conversation: ours by default, theirs by a setting."""

import json
from typing import Any

import pytest
from anthropic import Anthropic
from openai.types.responses import ResponseCompactionItem

from everlong.testing import ScriptedServer, Window
from tests.gateway.chains.harbour import ORDER, QUESTION, RULE, client_of, entry, harbour, held_by
from tests.gateway.running import RunningGateway
from tests.sdk_clients import closed_later

LEFT = "no; compaction is left to the provider"


def _history(turns: int = 12) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = [{"role": "user", "content": RULE}]
    for turn in range(turns):
        items += [{"role": "assistant", "content": "Noted. " * 30}, {"role": "user", "content": entry(turn)}]
    return items


def _sent(provider: ScriptedServer) -> Any:
    return json.loads(provider.requests[-1].body)


# --- OpenAI ----------------------------------------------------------------------------------------


def test_the_compact_endpoint_is_answered_here_and_its_item_goes_on() -> None:
    with harbour(16_000) as provider, RunningGateway(upstream=provider.url, mode="trim") as gateway:
        client = client_of(gateway.url)
        raw = client.responses.with_raw_response.compact(model="gpt-4o", input=_history(), instructions="Keep the log.")
        compacted = raw.parse()
        assert raw.headers["x-everlong-managed"] == "yes"
        assert not provider.requests
        assert not held_by(provider).asked
        assert compacted.object == "response.compaction"
        (item,) = compacted.output
        assert isinstance(item, ResponseCompactionItem)
        question = {"role": "user", "content": QUESTION}
        answer = client.responses.create(model="gpt-4o", input=[item.to_dict(), question])  # type: ignore[list-item]
        assert answer.output_text == f"It is {ORDER}."
        assert len(provider.requests[-1].body) < len(json.dumps(_history())) / 1.5
        assert "compaction" not in [each.get("type") for each in _sent(provider)["input"]], "no provider could read it"


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_codex_asks_with_a_trigger_and_gets_exactly_one_item(stream: bool) -> None:
    with harbour(16_000) as provider, RunningGateway(upstream=provider.url, mode="trim") as gateway:
        client = client_of(gateway.url)
        asked: Any = [*_history(), {"type": "compaction_trigger"}]
        got: Any = client.responses.create(model="gpt-4o", input=asked, stream=stream)
        if stream:
            events = list(got)
            done = [event.item for event in events if event.type == "response.output_item.done"]
            got = events[-1].response
            assert [item.to_dict() for item in done] == [item.to_dict() for item in got.output]
        assert [item.type for item in got.output] == ["compaction"]
        assert got.status == "completed"
        assert not provider.requests
        # It keeps the user's messages itself, and puts what is new about its environment before them.
        kept = [item for item in _history() if item["role"] == "user"]
        new = {"role": "user", "content": "<environment_context>fresh</environment_context>"}
        ended = [got.output[0].to_dict(), {"role": "user", "content": QUESTION}]
        answer = client.responses.create(model="gpt-4o", input=[new, *kept, *ended])
        assert answer.output_text == f"It is {ORDER}."
        body = provider.requests[-1].body
        assert b"fresh" in body
        assert body.count(RULE.encode()) == 1, "what the item stands for is not said twice"


def test_codex_compacts_again_and_again_without_saying_anything_twice() -> None:
    """It sends its developer text and the user's messages anew, before the item, each time."""
    with harbour(16_000) as provider, RunningGateway(upstream=provider.url, mode="trim") as gateway:
        client = client_of(gateway.url)
        developer = {"role": "developer", "content": "You are a coding agent. " * 20}
        users: list[Any] = [{"role": "user", "content": RULE}]
        items: list[Any] = [developer, *users]
        for turn in range(12):
            users.append({"role": "user", "content": entry(turn)})
            items.append(users[-1])
            answer = client.responses.create(model="gpt-4o", input=items)
            items.append({"role": "assistant", "content": answer.output_text})
            assert provider.requests[-1].body.count(b"You are a coding agent. You") == 10
            assert provider.requests[-1].body.count(RULE.encode()) <= 1
            if turn % 4 == 3:
                asked: Any = [*items, {"type": "compaction_trigger"}]
                (item,) = client.responses.create(model="gpt-4o", input=asked).output
                items = [developer, *users, item.to_dict()]
        assert provider.requests[-1].tokens < 4_500
        items.append({"role": "user", "content": QUESTION})
        assert client.responses.create(model="gpt-4o", input=items).output_text == f"It is {ORDER}."


def test_a_chain_is_compacted_by_its_name() -> None:
    with harbour(16_000) as provider, RunningGateway(upstream=provider.url, mode="trim") as gateway:
        client = client_of(gateway.url)
        first = client.responses.create(model="gpt-4o", input=_history())  # type: ignore[arg-type]
        compacted = client.responses.compact(model="gpt-4o", previous_response_id=first.id, input=entry(99))
        (item,) = compacted.output
        answer = client.responses.create(
            model="gpt-4o",
            input=[item.to_dict(), {"role": "user", "content": QUESTION}],  # type: ignore[list-item]
        )
        assert answer.output_text == f"It is {ORDER}."


def test_theirs_leaves_compaction_to_the_provider_and_never_cuts_what_it_wrote() -> None:
    options: dict[str, Any] = {"mode": "trim", "provider_compaction": "theirs"}
    with harbour(6_000) as provider, RunningGateway(upstream=provider.url, **options) as gateway:
        client = client_of(gateway.url)
        raw = client.responses.with_raw_response.compact(model="gpt-4o", input=_history(3))
        assert raw.headers["x-everlong-managed"] == LEFT
        assert held_by(provider).asked == ["POST /v1/responses/compact"]
        items: list[Any] = raw.http_response.json()["output"]
        assert items[-1]["encrypted_content"] == "sealed by the provider"
        compactions = 0
        for turn in range(15):
            items.append({"role": "user", "content": entry(turn)})
            answer = client.responses.with_raw_response.create(model="gpt-4o", input=items)
            compactions += int(answer.headers["x-everlong-compactions"])
            items.append({"role": "assistant", "content": answer.parse().output_text})
            assert b"sealed by the provider" in provider.requests[-1].body
        assert compactions


def test_a_trigger_is_left_to_the_provider_too() -> None:
    with harbour() as provider, RunningGateway(upstream=provider.url, provider_compaction="theirs") as gateway:
        asked: Any = [*_history(2), {"type": "compaction_trigger"}]
        raw = client_of(gateway.url).responses.with_raw_response.create(model="gpt-4o", input=asked)
        assert raw.headers["x-everlong-managed"] == LEFT
        assert _sent(provider)["input"] == asked


def test_an_item_of_ours_is_opened_in_every_mode_and_a_broken_one_is_left_alone() -> None:
    with harbour(16_000) as provider, RunningGateway(upstream=provider.url, mode="trim") as gateway:
        client = client_of(gateway.url)
        (item,) = (each.to_dict() for each in client.responses.compact(model="gpt-4o", input=_history()).output)
        asked: Any = [item, {"role": "user", "content": QUESTION}]
        answer = client.responses.create(model="gpt-4o", input=asked, extra_headers={"x-everlong-mode": "off"})
        assert answer.output_text == f"It is {ORDER}."
        for seal in ("everlong.compaction.1.", "everlong.compaction.1.!", "everlong.compaction.1.W10="):
            broken: Any = [{**item, "encrypted_content": seal}, {"role": "user", "content": QUESTION}]
            client.responses.create(model="gpt-4o", input=broken)
            assert _sent(provider)["input"][0]["encrypted_content"] == seal


@pytest.mark.parametrize("setting", ["ours", "theirs"])
@pytest.mark.parametrize("mode", ["trim", "off"])
def test_fields_that_ask_the_provider_to_shorten(setting: str, mode: str) -> None:
    asked: dict[str, Any] = {
        "truncation": "auto",
        "context_management": [{"type": "compaction", "compact_threshold": 1000}, {"type": "other"}],
    }
    with harbour() as provider:
        with RunningGateway(upstream=provider.url, mode=mode, provider_compaction=setting) as gateway:
            client_of(gateway.url).responses.create(model="gpt-4o", input="Hello", **asked)
        sent = {name: value for name, value in _sent(provider).items() if name in asked}
    ours = setting == "ours" and mode != "off"
    assert sent == ({"context_management": [{"type": "other"}]} if ours else asked)


# --- Anthropic -------------------------------------------------------------------------------------

EDITS = [
    {"type": "clear_thinking_20251015", "keep": "all"},
    {"type": "clear_tool_uses_20250919"},
    {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}},
]


def _anthropic(gateway: RunningGateway) -> Anthropic:
    return closed_later(Anthropic(base_url=gateway.address, api_key="key", max_retries=0))


@pytest.mark.parametrize("setting", ["ours", "theirs"])
def test_edits_that_shorten_are_ours_and_others_stay(setting: str) -> None:
    with harbour() as provider, RunningGateway(upstream=provider.url, provider_compaction=setting) as gateway:
        for edits, left in ((EDITS, EDITS[:1]), (EDITS[1:], None)):
            _anthropic(gateway).messages.create(
                model="claude-opus-4-6",
                max_tokens=100,
                messages=[{"role": "user", "content": "Hello"}],
                extra_body={"context_management": {"edits": edits}},
            )
            kept = edits if setting == "theirs" else left
            assert _sent(provider).get("context_management") == (None if kept is None else {"edits": kept})


def _compacted_history() -> list[dict[str, Any]]:
    block = {"type": "compaction", "content": f"So far: {RULE}"}
    return [
        {"role": "user", "content": entry(1)},
        {"role": "assistant", "content": [{"type": "text", "text": "Noted."}, block, {"type": "text", "text": "On."}]},
        {"role": "user", "content": "Thanks."},
        {"role": "assistant", "content": [{"type": "compaction", "content": None}, {"type": "text", "text": "Yes."}]},
        {"role": "user", "content": QUESTION},
    ]


@pytest.mark.parametrize("setting", ["ours", "theirs"])
def test_a_compaction_block_stands_for_everything_before_it(setting: str) -> None:
    with harbour() as provider, RunningGateway(upstream=provider.url, provider_compaction=setting) as gateway:
        raw = _anthropic(gateway).messages.with_raw_response.create(
            model="claude-opus-4-6",
            max_tokens=100,
            messages=_compacted_history(),  # type: ignore[arg-type]
        )
        assert raw.parse().content[0].text == f"It is {ORDER}."  # type: ignore[union-attr]
        said = [(message.role.value, message.text) for message in provider.requests[-1].messages]
        assert said[:3] == [("user", f"So far: {RULE}"), ("assistant", "On."), ("user", "Thanks.")]
        assert entry(1).encode() not in provider.requests[-1].body
        assert int(raw.headers["x-everlong-tokens-before"]) < 200, "what the provider drops is not counted"


def test_in_mode_off_a_compaction_block_is_forwarded() -> None:
    with harbour() as provider, RunningGateway(upstream=provider.url, mode="off") as gateway:
        _anthropic(gateway).messages.create(
            model="claude-opus-4-6",
            max_tokens=100,
            messages=_compacted_history(),  # type: ignore[arg-type]
        )
        assert _sent(provider)["messages"] == _compacted_history()


def test_a_conversation_with_compaction_blocks_goes_on_past_the_window() -> None:
    with ScriptedServer(window=Window(6_000)) as provider:
        options: dict[str, Any] = {"upstream": provider.url, "mode": "trim"}
        with RunningGateway(**options) as gateway:
            messages = _compacted_history()[:3]
            for turn in range(20):
                answer = _anthropic(gateway).messages.create(
                    model="claude-opus-4-6",
                    max_tokens=500,
                    messages=messages,  # type: ignore[arg-type]
                )
                text = answer.content[0].text[:300]  # type: ignore[union-attr]
                messages += [{"role": "assistant", "content": text}, {"role": "user", "content": entry(turn)}]
                assert ORDER.encode() in provider.requests[-1].body, "the summary is the beginning, and stays"
