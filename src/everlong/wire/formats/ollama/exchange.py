"""Ollama's chat: write a request and read its reply, one object per line."""

from typing import cast

from everlong.core import Json, JsonObject, Message, ref_of
from everlong.wire.fields import dump
from everlong.wire.formats.ollama.messages import NAME, read_message, write_history
from everlong.wire.formats.reply_reader import Outgoing, ReplyReader, body_fields, text_of, tools_of
from everlong.wire.replies import CallGrew, Reply, Request, Said, Thought

__all__ = ["LENGTH", "MADE", "PATH", "OllamaReader", "ask"]

PATH = "/chat"
LENGTH = "num_predict"
MADE = "made_"  # the beginning of ids that we make for calls without one


def ask(request: Request, key: str) -> Outgoing:
    """Write the request."""
    body = body_fields(request) | write_history(request.messages)
    body |= {"model": request.model, "stream": True}
    if request.tools and "tools" not in body:  # the caller's empty list must stay: only that forbids calls
        body["tools"] = tools_of(request)
    settings = body.get("options")
    options: JsonObject = dict(settings) if isinstance(settings, dict) else {}
    if request.max_tokens is not None:
        options[LENGTH] = request.max_tokens
    if request.temperature is not None:
        options["temperature"] = request.temperature
    if options:
        body["options"] = options
    return Outgoing(PATH, body, {"authorization": f"Bearer {key}"} if key else {})


class OllamaReader(ReplyReader):
    """Reads a `message` per line; the last one has `done`. Calls are complete; completions have `response` instead."""

    def __init__(self) -> None:
        super().__init__()
        self._said: list[str] = []
        self._thought: list[str] = []
        self._calls: list[Json] = []

    def take(self, event: JsonObject) -> list[Reply]:
        """Return the pieces of one line."""
        self.note_usage(event, NAME)
        if event.get("done") is True:
            self.stop, self.complete = text_of(event.get("done_reason")) or "stop", True
        message = event.get("message")
        said = message if isinstance(message, dict) else event
        words = text_of(said.get("content") if said is message else event.get("response"))
        thoughts = text_of(said.get("thinking"))
        pieces: list[Reply] = []
        if thoughts:
            self._thought.append(thoughts)
            pieces.append(Thought(thoughts))
        if words:
            self._said.append(words)
            pieces.append(Said(words))
        calls, moment = said.get("tool_calls"), text_of(event.get("created_at"))
        listed = calls if isinstance(calls, list) else []
        return [*pieces, *(self._called(call, moment) for call in listed if isinstance(call, dict))]

    def _called(self, call: JsonObject, moment: str) -> CallGrew:
        function = call.get("function")
        said = function if isinstance(function, dict) else {}
        arguments = said.get("arguments")
        text = arguments if isinstance(arguments, str) else dump(arguments or {})
        # Old servers send no ids. The time of the reply gives the same call in two replies different ids.
        made = MADE + ref_of(dump([moment, len(self._calls), said.get("name"), text]))
        identity = text_of(call.get("id")) or made
        self._calls.append(call | {"id": identity})
        return CallGrew(len(self._calls) - 1, identity, text_of(said.get("name")), text)

    def message(self) -> Message:
        """Return the answer so far."""
        fields: JsonObject = {"role": "assistant", "content": "".join(self._said)}
        if self._thought:
            fields["thinking"] = "".join(self._thought)
        if self._calls:
            fields["tool_calls"] = cast(Json, self._calls)
        return read_message(fields)
