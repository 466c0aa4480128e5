"""Clients that name the answer before: within the window the provider notices nothing, beyond it they do not."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from openai import APIError, BadRequestError, NotFoundError

from everlong.core import Role
from everlong.gateway.recall.tool import NAME
from everlong.llm import ReceivedRequest
from everlong.llm.scripted.script import Broken
from everlong.testing import Answer, Refusal, ScriptedServer, Window
from tests.gateway.chains.harbour import (
    ORDER,
    QUESTION,
    RULE,
    Talk,
    client_of,
    continues,
    entry,
    harbour,
    held_by,
    turns_of,
)
from tests.gateway.running import RunningGateway

WINDOW = 16_000


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_sixty_turns_by_previous_response_id_go_on_and_know_what_was_said_in_the_third(stream: bool) -> None:
    with harbour(WINDOW) as provider, RunningGateway(upstream=provider.url) as gateway:
        talk = Talk(client_of(gateway.url), stream=stream)
        for turn in range(1, 61):
            talk.say(RULE if turn == 3 else QUESTION if turn in (20, 40, 60) else entry(turn))
        assert [talk.answers[turn - 1] for turn in (20, 40, 60)] == [f"It is {ORDER}."] * 3
        turns = [one for one in turns_of(provider) if one.tokens <= WINDOW]
        assert len(turns) == 60, "each turn was accepted once"
        assert len(turns_of(provider)) <= 61, "one refusal taught the window"
        # A request is whole exactly where a compaction was made, and the first one; all others continue an answer.
        whole = [at for at, one in enumerate(turns) if not continues(one)]
        compacted = [at for at, headers in enumerate(talk.headers) if int(headers["x-everlong-compactions"])]
        assert whole == [0, *compacted]
        assert len(compacted) >= 3


def test_between_compactions_the_provider_reads_the_same_beginning_and_continues_the_answer_before() -> None:
    with harbour(6_000) as provider, RunningGateway(upstream=provider.url, mode="trim") as gateway:
        talk = Talk(client_of(gateway.url))
        for turn in range(1, 31):
            talk.say(entry(turn))
        turns = [one for one in turns_of(provider) if one.tokens <= 6_000]
        for before, one in itertools.pairwise(turns):
            if continues(one):
                assert continues(one) == f"resp_{before.number}"
                assert _said(one)[: len(before.messages)] == _said(before)
        assert talk.compactions >= 2


def _said(one: ReceivedRequest) -> list[tuple[Role, str]]:
    return [(message.role, message.text) for message in one.messages]


def test_within_the_window_the_provider_gets_what_the_client_sent() -> None:
    with harbour() as provider, RunningGateway(upstream=provider.url) as gateway:
        talk = Talk(client_of(gateway.url), options={"metadata": {"a": "b"}, "temperature": 0.5})
        talk.say("first", instructions="Be brief.")
        talk.say([{"role": "user", "content": "second"}])
        body = json.loads(provider.requests[1].body)
        assert body["previous_response_id"] == "resp_0"
        assert body["metadata"] == {"a": "b"}
        assert body["temperature"] == 0.5
        assert "instructions" not in body, "instructions are those of each request"
        assert [item["role"] for item in body["input"]] == ["user"]
        assert [message.role for message in provider.requests[1].messages] == [Role.USER, Role.ASSISTANT, Role.USER]


def test_instructions_and_tools_are_those_of_each_request_after_a_compaction_too() -> None:
    tool = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
    with harbour(6_000) as provider, RunningGateway(upstream=provider.url, mode="trim") as gateway:
        talk = Talk(client_of(gateway.url))
        for turn in range(1, 16):
            talk.say(entry(turn), instructions=f"You are on watch {turn}.", tools=[tool] if turn % 2 else [])
            body = json.loads(provider.requests[-1].body)
            assert body["instructions"].startswith(f"You are on watch {turn}.")
            assert bool(body["tools"]) == bool(turn % 2)
            assert f"watch {turn - 1}." not in body["instructions"]
        assert talk.compactions


def test_calls_and_their_results_stay_pairs() -> None:
    def works(asked: ReceivedRequest) -> Answer:
        if asked.messages[-1].role is Role.TOOL:
            return Answer(text="Read.")
        return Answer(text="I look.", calls=(("look", '{"at": "the pier"}'),))

    tool = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
    with ScriptedServer(works, window=Window(6_000)) as provider:
        with RunningGateway(upstream=provider.url, mode="trim") as gateway:
            talk = Talk(client_of(gateway.url), options={"tools": [tool]})
            for turn in range(1, 31):
                talk.say(f"Look {turn}")
                (call,) = held_by(provider).answers[talk.previous].body["output"][1:]
                talk.say([{"type": "function_call_output", "call_id": call["call_id"], "output": entry(turn)}])
                assert talk.answers[-1] == "Read."
        whole = [one for one in turns_of(provider) if not continues(one) and one.tokens <= 6_000]
        assert len(whole) >= 3
        for one in whole:
            body = json.loads(one.body)
            calls = [item["call_id"] for item in body["input"] if item.get("type") == "function_call"]
            results = [item["call_id"] for item in body["input"] if item.get("type") == "function_call_output"]
            assert sorted(calls) == sorted(results)


def test_a_client_may_go_back_to_an_earlier_answer() -> None:
    with harbour(6_000) as provider, RunningGateway(upstream=provider.url, mode="trim") as gateway:
        talk = Talk(client_of(gateway.url))
        names = []
        for turn in range(1, 20):
            talk.say(RULE if turn == 2 else entry(turn))
            names.append(talk.previous)
        for name, knows in ((names[0], False), (names[1], True), (names[9], True), (names[18], True)):
            talk.previous = name
            assert (talk.say(QUESTION) == f"It is {ORDER}.") is knows
        assert not [one for one in turns_of(provider)[-4:] if one.tokens > 6_000]


def test_an_answer_that_the_provider_lost_is_sent_from_here() -> None:
    with harbour() as provider, RunningGateway(upstream=provider.url) as gateway:
        talk = Talk(client_of(gateway.url))
        talk.say(RULE)
        talk.say(entry(2))
        held_by(provider).answers.clear()
        assert talk.say(QUESTION) == f"It is {ORDER}."
        assert [continues(one) for one in provider.requests[-1:]] == [""]
        talk.say(entry(4))
        assert continues(provider.requests[-1]) == f"resp_{provider.requests[-2].number}"


def test_an_answer_that_is_not_stored_is_continued_from_here() -> None:
    with harbour() as provider, RunningGateway(upstream=provider.url) as gateway:
        talk = Talk(client_of(gateway.url))
        talk.say(RULE)
        talk.say(entry(2), store=False)
        assert talk.say(QUESTION) == f"It is {ORDER}."
        assert not continues(provider.requests[-1])


def test_two_keys_share_nothing() -> None:
    with harbour() as provider, RunningGateway(upstream=provider.url) as gateway:
        owner = Talk(client_of(gateway.url, "owner"))
        owner.say(RULE)
        held_by(provider).answers.clear()
        other = Talk(client_of(gateway.url, "other"), previous=owner.previous)
        with pytest.raises(NotFoundError):
            other.say(QUESTION)
        assert owner.say(QUESTION) == f"It is {ORDER}."


def test_what_a_client_deletes_is_forgotten_here_too() -> None:
    with harbour() as provider, RunningGateway(upstream=provider.url) as gateway:
        talk = Talk(client_of(gateway.url))
        talk.say(RULE)
        talk.client.responses.delete(talk.previous)
        with pytest.raises(NotFoundError):
            talk.say(QUESTION)
        assert not gateway.services.chains.past("any", "resp_0").links


@pytest.mark.parametrize("keep", ["text", "edits"])
def test_a_restarted_gateway_goes_on(tmp_path: Path, keep: str) -> None:
    """With the texts kept it knows the past; otherwise it asks the provider once it needs it."""
    store = f"sqlite:///{tmp_path}/state.db"
    with harbour(6_000) as provider:
        talk = Talk(client_of("http://unused"))
        for run in range(4):
            with RunningGateway(upstream=provider.url, mode="trim", store=store, keep=keep) as gateway:
                talk.client = client_of(gateway.url)
                for turn in range(1, 9):
                    talk.say(RULE if run == 0 and turn == 3 else entry(8 * run + turn))
        with RunningGateway(upstream=provider.url, mode="trim", store=store, keep=keep) as gateway:
            talk.client = client_of(gateway.url)
            assert talk.say(QUESTION) == f"It is {ORDER}."
        asked = [one for one in held_by(provider).asked if one.startswith("GET")]
        assert bool(asked) is (keep == "edits")


def test_gateways_on_one_store_continue_each_others_answers(tmp_path: Path) -> None:
    options: dict[str, Any] = {"mode": "trim", "store": f"sqlite:///{tmp_path}/state.db", "keep": "text"}
    with harbour(6_000) as provider:
        with (
            RunningGateway(upstream=provider.url, **options) as one,
            RunningGateway(upstream=provider.url, **options) as two,
        ):
            talk = Talk(client_of("http://unused"))
            for turn in range(1, 31):
                gateway = (one, two)[turn % 2]
                talk.client = client_of(gateway.url)
                talk.say(RULE if turn == 3 else QUESTION if turn == 30 else entry(turn))
                gateway.services.state_store.flush()
        assert talk.answers[-1] == f"It is {ORDER}."
        assert not [asked for asked in held_by(provider).asked if asked.startswith("GET")]
        accepted = [one for one in turns_of(provider) if one.tokens <= 6_000]
        whole = [one for one in accepted if not continues(one)]
        assert len(whole) - 1 == talk.compactions, "no process sends more than a cut makes necessary"


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_with_recall_the_next_request_continues_after_what_the_client_did_not_see(stream: bool) -> None:
    def recalls(asked: ReceivedRequest) -> Answer:
        last = asked.messages[-1]
        if last.role is Role.TOOL and "Three boats" in str(last.results):
            return Answer(text="Three.")
        if last.role is Role.TOOL:
            return Answer(text="Found it.", calls=(("look", "{}"),))
        if QUESTION in last.text:
            return Answer(calls=((NAME, json.dumps({"query": "order number"})),))
        return Answer(text="Noted. " * 100)

    provider = ScriptedServer(recalls, window=Window(16_000))
    options: dict[str, Any] = {"mode": "trim", "recall_tool": True}
    tool = {"type": "function", "name": "look", "parameters": {"type": "object", "properties": {}}}
    with provider, RunningGateway(upstream=provider.url, **options) as gateway:
        talk = Talk(client_of(gateway.url), stream=stream, options={"tools": [tool]})
        talk.say(RULE)
        while not talk.compactions:
            talk.say(entry(len(talk.answers)))
        assert talk.say(QUESTION) == "Found it."
        call = held_by(provider).answers[f"resp_{provider.requests[-1].number}"].body["output"][-1]["call_id"]
        talk.say([{"type": "function_call_output", "call_id": call, "output": "Three boats"}])
        assert talk.answers[-1] == "Three."
        assert talk.compactions == 1
        assert continues(provider.requests[-1]) == f"resp_{provider.requests[-2].number}"
        said = [message.text for message in provider.requests[-1].messages]
        assert sum("Found it." in text for text in said) == 1
        talk.say("Thank you.")
        assert continues(provider.requests[-1]) == f"resp_{provider.requests[-2].number}"


def test_an_answer_that_broke_off_is_no_link() -> None:
    with harbour() as provider, RunningGateway(upstream=provider.url) as gateway:
        talk = Talk(client_of(gateway.url), stream=True)
        talk.say(RULE)
        script, provider.model.script = provider.model.script, lambda _: Broken(Answer(text="Half of it. " * 9), 6)
        with pytest.raises(APIError):
            talk.say(entry(2))
        assert not gateway.services.chains.past(_scope(gateway), "resp_1").links
        provider.model.script = script
        assert talk.say(QUESTION) == f"It is {ORDER}."
        assert continues(provider.requests[-1]) == "resp_0"


def test_other_refusals_reach_the_client_as_they_are() -> None:
    refusal = '{"error": {"message": "bad tool", "type": "invalid_request_error", "param": "tools", "code": null}}'
    with harbour() as provider, RunningGateway(upstream=provider.url) as gateway:
        talk = Talk(client_of(gateway.url))
        talk.say(RULE)
        provider.model.script = lambda _: Refusal(400, refusal)
        with pytest.raises(BadRequestError, match="bad tool"):
            talk.say(QUESTION)
        assert len(provider.requests) == 2


def test_a_turn_keeps_its_news_and_no_more() -> None:
    """By name or with the whole history in every request: what is held grows with what was said."""
    with harbour(1_000_000) as provider, RunningGateway(upstream=provider.url) as gateway:
        talk = Talk(client_of(gateway.url))
        sizes = []
        for turn in range(1, 31):
            talk.say(entry(turn))
            link = gateway.services.chains.past(_scope(gateway), talk.previous).links[-1]
            sizes.append(link.size)
        assert max(sizes) < 2 * min(sizes)
        items: list[dict[str, str]] = []
        for turn in range(1, 31):
            items.append({"role": "user", "content": entry(turn)})
            answer = talk.client.responses.create(model="gpt-4o", input=items)
            items.append({"role": "assistant", "content": answer.output_text})
            sizes.append(gateway.services.chains.past(_scope(gateway), answer.id).links[-1].size)
        assert max(sizes) < 2 * min(sizes)
        past = gateway.services.chains.past(_scope(gateway), answer.id)
        assert len(past.links) == 30
        assert not past.missing


def _scope(gateway: RunningGateway) -> str:
    return gateway.services.clients.identify([(b"authorization", b"Bearer key")]).scope


def test_a_body_without_input_is_left_to_the_provider() -> None:
    with harbour() as provider, RunningGateway(upstream=provider.url) as gateway:
        talk = Talk(client_of(gateway.url))
        talk.say(RULE)
        talk.client.responses.create(model="gpt-4o", previous_response_id=talk.previous)
        assert json.loads(provider.requests[-1].body) == {"model": "gpt-4o", "previous_response_id": talk.previous}
