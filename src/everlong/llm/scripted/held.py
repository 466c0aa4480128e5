"""The answers and conversations that a scripted provider holds for its clients, like OpenAI's Responses API.

A request that names an earlier answer or a conversation is answered with everything before it; an unknown name is
refused. Clients can list, extend and delete what is held, at the paths of the format.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import cast

from aiohttp import web

from everlong.core import Json, JsonObject
from everlong.wire import Format, Held

__all__ = ["HeldAnswers", "UnknownName"]

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
MOST_ADDED = 20  # items that one request may add to a conversation
PAGE = 20  # items that are listed at once


class UnknownName(Exception):
    """A request names an answer or a conversation that is not held."""

    def __init__(self, field_name: str, name: str) -> None:
        super().__init__(
            f"{'Previous response' if 'response' in field_name else 'Conversation'} with id '{name}' not found."
        )
        self.field_name = field_name


@dataclass(frozen=True, slots=True)
class _Answer:
    """A held answer: what its request sent, the whole prompt that it answers, and its body."""

    previous: str | None
    sent: list[JsonObject]
    prompt: list[JsonObject]
    body: JsonObject


@dataclass(slots=True)
class HeldAnswers:
    """The answers and conversations that a server holds. `cumulative`: the input of an answer is all before it."""

    spoken: Format
    cumulative: bool = False
    answers: dict[str, _Answer] = field(default_factory=dict)
    conversations: dict[str, list[JsonObject]] = field(default_factory=dict)
    #: The other requests, besides those for answers: method and path.
    asked: list[str] = field(default_factory=list)
    _items: int = 0

    @property
    def held(self) -> Held:
        """The format's names for what is held."""
        held = self.spoken.server.held
        assert held is not None, "a format whose provider holds conversations"
        return held

    def resolved(self, body: JsonObject) -> JsonObject:
        """Return a request with everything before it. Raises UnknownName."""
        held, messages = self.held, self.spoken.api.messages
        previous, conversation = body.get(held.previous), _name_in(body.get(held.conversation))
        before: list[JsonObject] = []
        if previous is not None:
            if str(previous) not in self.answers:
                raise UnknownName(held.previous, str(previous))
            answer = self.answers[str(previous)]
            before = [*answer.prompt, *_objects(answer.body[held.output])]
        if conversation:
            if conversation not in self.conversations:
                raise UnknownName(held.conversation, conversation)
            before = self.conversations[conversation]
        rest = {name: value for name, value in body.items() if name not in (held.previous, held.conversation)}
        return rest | {messages: cast(Json, [*before, *self._sent(body)])} if before else rest

    def keep(self, body: JsonObject, answer: JsonObject) -> None:
        """Keep an answer to a request, unless the request says not to."""
        held = self.held
        previous, conversation = body.get(held.previous), _name_in(body.get(held.conversation))
        prompt = _objects(self.resolved(body).get(self.spoken.api.messages)) or self._sent(body)
        if conversation:
            self.conversations[conversation] += [*self._named(self._sent(body)), *_objects(answer[held.output])]
        if body.get(held.store) is not False:
            name = previous if isinstance(previous, str) else None
            self.answers[str(answer["id"])] = _Answer(name, self._named(self._sent(body)), self._named(prompt), answer)

    def _sent(self, body: JsonObject) -> list[JsonObject]:
        given = body.get(self.spoken.api.messages)
        text_message = self.spoken.server.text_message
        if isinstance(given, str) and text_message is not None:
            return [text_message(given)]
        return _objects(given)

    def _named(self, items: list[JsonObject]) -> list[JsonObject]:
        """Return the items with ids, as the provider lists them."""
        named = []
        for item in items:
            self._items += "id" not in item
            named.append(item if "id" in item else item | {"id": f"item_{self._items}"})
        return named

    # --- what it shows -----------------------------------------------------------------------------

    def routes(self) -> list[web.RouteDef]:
        """Return the paths at which answers and conversations are listed, added to and deleted."""
        held, base = self.held, self.spoken.api.base
        answer, conversation = f"{base}{held.answers}/{{name}}", f"{base}{held.conversations}/{{name}}"
        return [
            web.get(answer, self._handler(self._answer)),
            web.delete(answer, self._handler(self._forget)),
            web.get(answer + held.inputs, self._handler(self._inputs)),
            web.post(base + held.conversations, self._handler(self._begin)),
            web.get(conversation + held.items, self._handler(self._listed)),
            web.post(conversation + held.items, self._handler(self._added)),
            web.delete(conversation + held.items + "/{item}", self._handler(self._removed)),
            web.post(base + self.spoken.api.compact_path, self._handler(self._compacted)),
        ]

    def _handler(self, respond: Callable[[web.Request, JsonObject], JsonObject]) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            self.asked.append(f"{request.method} {request.path}")
            body = await request.read()
            try:
                return web.json_response(respond(request, json.loads(body) if body else {}))
            except LookupError:
                error = {"message": "not found", "type": "invalid_request_error", "param": None, "code": None}
                return web.json_response({"error": error}, status=404)
            except ValueError as problem:
                return web.json_response(
                    {"error": {"message": str(problem), "type": "invalid_request_error"}}, status=400
                )

        return handle

    def _answer(self, request: web.Request, _: JsonObject) -> JsonObject:
        answer = self.answers[request.match_info["name"]]
        return answer.body | {self.held.previous: answer.previous}

    def _forget(self, request: web.Request, _: JsonObject) -> JsonObject:
        name = request.match_info["name"]
        del self.answers[name]
        return {"id": name, "object": "response", "deleted": True}

    def _inputs(self, request: web.Request, _: JsonObject) -> JsonObject:
        answer = self.answers[request.match_info["name"]]
        return _page(answer.prompt if self.cumulative else answer.sent, request)

    def _begin(self, _: web.Request, body: JsonObject) -> JsonObject:
        name = f"conv_{len(self.conversations)}"
        self.conversations[name] = self._named(_objects(body.get("items")))
        return {"id": name, "object": "conversation", "created_at": 0, "metadata": {}}

    def _listed(self, request: web.Request, _: JsonObject) -> JsonObject:
        return _page(self.conversations[request.match_info["name"]], request)

    def _added(self, request: web.Request, body: JsonObject) -> JsonObject:
        items = self._named(_objects(body.get("items")))
        if not 0 < len(items) <= MOST_ADDED:
            raise ValueError(f"items: add 1 to {MOST_ADDED} at a time")
        self.conversations[request.match_info["name"]] += items
        return _list_of(items, more=False)

    def _removed(self, request: web.Request, _: JsonObject) -> JsonObject:
        name, item = request.match_info["name"], request.match_info["item"]
        self.conversations[name] = [one for one in self.conversations[name] if one["id"] != item]
        return {"id": name, "object": "conversation", "created_at": 0, "metadata": {}}

    def _compacted(self, _: web.Request, body: JsonObject) -> JsonObject:
        """Return all messages of the user, and one opaque item."""
        said = [item for item in self._sent(body) if item.get("role") == "user"]
        sealed: JsonObject = {"type": "compaction", "id": "cmp_0", "encrypted_content": "sealed by the provider"}
        answer: JsonObject = {"id": "resp_compacted", "object": "response.compaction", "created_at": 0}
        return answer | {"output": [*self._named(said), sealed], "usage": None}


def _page(items: list[JsonObject], request: web.Request) -> JsonObject:
    limit, after = int(request.query.get("limit", PAGE)), request.query.get("after", "")
    ordered = items if request.query.get("order") == "asc" else items[::-1]
    start = next((at + 1 for at, item in enumerate(ordered) if item["id"] == after), 0)
    return _list_of(ordered[start : start + limit], more=len(ordered) > start + limit)


def _list_of(items: list[JsonObject], *, more: bool) -> JsonObject:
    ends: JsonObject = {"first_id": items[0]["id"], "last_id": items[-1]["id"]} if items else {}
    return {"object": "list", "data": [*items], "has_more": more, **ends}


def _name_in(value: Json) -> str:
    """Return the name of a conversation from a text, or from an object with an id."""
    name = value.get("id") if isinstance(value, dict) else value
    return name if isinstance(name, str) else ""


def _objects(value: Json) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
