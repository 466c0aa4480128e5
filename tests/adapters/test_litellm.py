"""litellm's own SDK and router with our callback, on a scripted provider over HTTP. Its proxy is run in the lab."""

import asyncio
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import litellm
import pytest
from litellm import ContextWindowExceededError, Router
from litellm.types.utils import CallTypes

from everlong.adapters import litellm as adapter
from everlong.adapters.litellm import EverlongHandler
from everlong.testing import Answer, ScriptedServer, Window
from tests.attack.rules_openai import chat

#: litellm itself warns of its own types and of what it leaves open.
pytestmark = pytest.mark.filterwarnings("ignore")
SMALL = 4_000  # tokens
NOTES = [f"Note {at}: " + " ".join(f"word{at}x{number}" for number in range(100)) for at in range(16)]


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(lambda _: Answer(text="Noted."), window=Window(SMALL)) as server:
        yield server


@pytest.fixture(autouse=True)
def no_callbacks() -> Iterator[None]:
    yield
    litellm.callbacks = []


def asked(server: ScriptedServer) -> dict[str, Any]:
    return {"model": "openai/scripted", "api_base": server.url, "api_key": "key"}


async def talk(server: ScriptedServer, ask: Any, *, stream: bool = False) -> None:
    """A client that holds its history and knows nothing of windows."""
    messages: list[Any] = [{"role": "system", "content": "You are a careful clerk."}]
    for note in NOTES:
        messages.append({"role": "user", "content": note})
        answer = await ask(messages=messages, stream=stream)
        if stream:
            answer = litellm.stream_chunk_builder([chunk async for chunk in answer], messages=messages)
        messages.append({"role": "assistant", "content": answer.choices[0].message.content})


def breaks(server: ScriptedServer) -> int:
    fitting = [request for request in server.requests if request.tokens <= SMALL]
    bodies = [json.loads(request.body)["messages"] for request in fitting]
    assert all(list(chat(json.loads(request.body))) == [] for request in fitting)
    return sum(later[: len(earlier)] != earlier for earlier, later in pairwise(bodies))


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_of_the_sdk_goes_past_the_window(server: ScriptedServer, stream: bool) -> None:
    handler = EverlongHandler(window=SMALL)
    litellm.callbacks = [handler]
    asyncio.run(talk(server, lambda **more: litellm.acompletion(**asked(server), **more), stream=stream))
    assert max(request.tokens for request in server.requests) <= SMALL
    (thread,) = handler.keeper.engine.threads.threads()
    assert breaks(server) == thread.points > 0


def test_a_router_that_retries_sends_what_fits_at_once_and_the_client_notices_nothing(server: ScriptedServer) -> None:
    litellm.callbacks = [EverlongHandler()]
    deployment = {"model_name": "clerk", "litellm_params": asked(server)}
    policy: Any = {"BadRequestErrorRetries": 2}
    router = Router(model_list=[deployment], num_retries=0, retry_policy=policy)
    asyncio.run(talk(server, lambda **more: router.acompletion(model="clerk", **more)))
    assert [request.tokens > SMALL for request in server.requests].count(True) == 1


def test_without_a_retry_the_client_is_refused_once_and_the_next_request_fits(server: ScriptedServer) -> None:
    litellm.callbacks = [EverlongHandler()]
    refused = 0

    async def ask(**more: Any) -> Any:
        nonlocal refused
        try:
            return await litellm.acompletion(**asked(server), **more)
        except ContextWindowExceededError:
            refused += 1
            return await litellm.acompletion(**asked(server), **more)

    asyncio.run(talk(server, ask))
    assert refused == 1


def test_keys_share_nothing_and_sessions_are_told_apart_by_their_id() -> None:
    handler = EverlongHandler()
    items = [{"role": "user", "content": "Hello!"}]
    requests: list[dict[str, Any]] = [
        {"metadata": {"user_api_key_hash": "a"}},
        {"metadata": {"user_api_key_hash": "b"}},
        {"metadata": {"user_api_key_hash": "a"}, "litellm_session_id": "one"},
        {"metadata": {"user_api_key_hash": "b", "session_id": "one"}},
        {"metadata": {"user_api_key_hash": "a"}, "litellm_metadata": {"user_api_key_hash": "c"}},
    ]

    async def work() -> None:
        for at, request in enumerate(requests):
            given = {"model": "gpt-4o", "messages": items, "litellm_call_id": str(at), **request}
            fitted = await handler.async_pre_call_deployment_hook(given, CallTypes.acompletion)
            assert fitted is not None
            assert fitted["messages"] == items

    asyncio.run(work())
    assert len(handler.keeper.engine.threads.threads()) == len(requests)


SHAPES: dict[CallTypes, dict[str, Any]] = {
    CallTypes.anthropic_messages: {
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Hello!"}],
        "max_tokens": 100,
    },
    CallTypes.aresponses: {"instructions": "Be brief.", "input": [{"role": "user", "content": "Hello!"}]},
}


@pytest.mark.parametrize("kind", SHAPES)
def test_other_apis_keep_their_fields(kind: CallTypes) -> None:
    given = {"model": "claude-sonnet-4-5", "litellm_call_id": "1", **SHAPES[kind]}
    assert asyncio.run(EverlongHandler().async_pre_call_deployment_hook(given, kind)) == given


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"model": "e", "input": "text"}, CallTypes.aembedding),
        ({"model": "m", "input": "a question alone"}, CallTypes.aresponses),
        ({"model": "m", "messages": []}, CallTypes.acompletion),
        ({"model": "m"}, None),
    ],
)
def test_what_has_no_messages_is_passed_on(given: dict[str, Any], kind: CallTypes | None) -> None:
    assert asyncio.run(EverlongHandler().async_pre_call_deployment_hook(given, kind)) is None


def test_the_ready_handler_takes_the_variables_of_everlong(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVERLONG_STORE", f"sqlite:///{tmp_path / 'chat.db'}")
    monkeypatch.setenv("EVERLONG_WINDOW", "4321")
    monkeypatch.delitem(vars(adapter), "handler", raising=False)
    handler = adapter.handler
    assert isinstance(handler, EverlongHandler)
    assert handler is adapter.handler
    assert handler.keeper.engine.blocking.context.settings.window == 4321
    assert (tmp_path / "chat.db").exists()
    monkeypatch.delitem(vars(adapter), "handler")
