"""OpenAI Chat Completions: write a request and read its reply, as the many servers send it."""

import json
from typing import cast

from everlong.core import Json, JsonObject, Message
from everlong.wire.fields import dump
from everlong.wire.formats.openai_chat.messages import NAME, read_message, write_history
from everlong.wire.formats.reply_reader import Outgoing, ReplyReader, body_fields, text_of, tools_of
from everlong.wire.replies import CallGrew, Reply, Request, Said, Thought

__all__ = ["PATH", "ChatReader", "GrowingCalls", "ask"]

PATH = "/chat/completions"

OURS = frozenset({"index", "id", "type", "function"})  # all other fields of a piece are kept unchanged


class GrowingCalls:
    """The calls so far, in the order they began."""

    def __init__(self) -> None:
        self._calls: list[JsonObject] = []
        self._by_index: dict[int, int] = {}
        self._by_id: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def whole(self) -> list[Json]:
        """Return all calls as a message contains them."""
        return [*self._calls]

    def grew(self, pieces: Json) -> list[CallGrew]:
        """Add the pieces of one chunk, and return what each adds."""
        listed = [piece for piece in pieces if isinstance(piece, dict)] if isinstance(pieces, list) else []
        return [self._one_grew(piece, at, len(listed)) for at, piece in enumerate(listed) if OURS & piece.keys()]

    def _one_grew(self, piece: JsonObject, at: int, together: int) -> CallGrew:
        function = piece.get("function")
        said = function if isinstance(function, dict) else {}
        place = self._place(piece, text_of(said.get("name")), at if together > 1 else len(self._calls) - 1)
        if place == len(self._calls):
            self._calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        self._note(piece, place)
        call = self._calls[place]
        whole = cast(dict[str, str], call["function"])
        call |= {name: value for name, value in piece.items() if name not in OURS}
        new_id = "" if call["id"] else text_of(piece.get("id"))
        call["id"] = text_of(call["id"]) or new_id
        name, arguments = _rest(whole["name"], text_of(said.get("name"))), _arguments(said.get("arguments"))
        whole["name"] += name
        whole["arguments"] += arguments
        return CallGrew(place, new_id, name, arguments)

    def _place(self, piece: JsonObject, name: str, neighbour: int) -> int:
        """Return the number of the call that a piece belongs to; the number of calls if it begins a new one."""
        key, index = text_of(piece.get("id")), piece.get("index")
        new = len(self._calls)
        if key in self._by_id:
            return self._by_id[key]
        if isinstance(index, int):
            known = self._by_index.get(index, new)
            other = known < new and bool(key and name and self._calls[known]["id"])
            return new if other else known
        if key or not 0 <= neighbour < new:
            return new
        return (
            new if name and _is_json(cast(JsonObject, self._calls[neighbour]["function"])["arguments"]) else neighbour
        )

    def _note(self, piece: JsonObject, place: int) -> None:
        key, index = text_of(piece.get("id")), piece.get("index")
        if key:
            self._by_id[key] = place
        if isinstance(index, int):
            self._by_index[index] = place


def _rest(known: str, said: str) -> str:
    """Return the new part of a name, which may come in pieces or be repeated as a whole.

    Example: "read", "read" -> ""
    """
    return said.removeprefix(known) if said.startswith(known) else said


def _arguments(said: Json) -> str:
    return dump(said) if isinstance(said, dict | list) else text_of(said)


def _is_json(text: Json) -> bool:
    try:
        json.loads(text_of(text))
    except (ValueError, RecursionError):
        return False
    return True


#: The fields for thinking: of DeepSeek and most servers, of OpenRouter.
THINKING = ("reasoning_content", "reasoning")
#: OpenRouter's signed form of the same, also in pieces, and its fields that grow.
SIGNED = "reasoning_details"
GROWING = ("text", "summary")


def ask(request: Request, key: str) -> Outgoing:
    """Write the request."""
    body = body_fields(request) | write_history(request.messages)
    body |= {"model": request.model, "stream": True, "stream_options": {"include_usage": True}}
    if request.tools:
        body["tools"] = tools_of(request)
    if request.max_tokens is not None:
        # OpenAI's reasoning models accept only the newer name, so use it if the caller does.
        name = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
        body[name] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    return Outgoing(PATH, body, {"authorization": f"Bearer {key}"} if key else {})


class ChatReader(ReplyReader):
    """Reads the `choices[0].delta` of each chunk."""

    def __init__(self) -> None:
        super().__init__()
        self._said: list[str] = []
        self._thought: list[str] = []
        self._thinking = THINKING[0]
        self._calls = GrowingCalls()
        self._signed: list[JsonObject] = []
        self._refused = ""

    def take(self, event: JsonObject) -> list[Reply]:
        """Return the pieces of one chunk."""
        self.note_usage(event, NAME)
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return []
        self.note_usage(choice.get("usage"), NAME)  # where Moonshot puts it
        if isinstance(choice.get("finish_reason"), str):
            self.stop, self.complete = cast(str, choice["finish_reason"]), True
        delta = choice.get("delta") or choice.get("message")
        return self._taken(delta) if isinstance(delta, dict) else []

    def _taken(self, delta: JsonObject) -> list[Reply]:
        pieces: list[Reply] = []
        words, thoughts = _in_blocks(delta.get("content"))
        for name in THINKING:
            if isinstance(delta.get(name), str) and delta[name]:
                self._thinking, thoughts = name, cast(str, delta[name])
                break
        if thoughts:
            self._thought.append(thoughts)
            pieces.append(Thought(thoughts))
        if words:
            self._said.append(words)
            pieces.append(Said(words))
        self._refused += text_of(delta.get("refusal"))
        self._sign(delta.get(SIGNED))
        return [*pieces, *self._calls.grew(delta.get("tool_calls"))]

    def _sign(self, details: Json) -> None:
        """Add signed details; pieces with the same index and type are joined."""
        for piece in details if isinstance(details, list) else []:
            if not isinstance(piece, dict):
                continue
            index, kind = piece.get("index"), piece.get("type")
            same = [
                one
                for one in self._signed
                if index is not None and (one.get("index"), one.get("type")) == (index, kind)
            ]
            if same:
                grown: JsonObject = {
                    name: text_of(same[-1].get(name)) + text_of(piece[name]) for name in GROWING if name in piece
                }
                same[-1] |= {name: value for name, value in piece.items() if value is not None} | grown
            else:
                self._signed.append(dict(piece))

    def message(self) -> Message:
        """Return the answer so far."""
        text = "".join(self._said)
        fields: JsonObject = {"role": "assistant", "content": text or None}
        if self._refused:
            fields["refusal"] = self._refused
        if self._signed:
            fields[SIGNED] = [*self._signed]
        if self._thought:
            fields[self._thinking] = "".join(self._thought)
        if self._calls:
            fields["tool_calls"] = self._calls.whole()
        elif not text:
            fields["content"] = ""
        return read_message(fields)


def _in_blocks(content: Json) -> tuple[str, str]:
    """Return text and thoughts of a content: a string, or blocks as Mistral's thinking models send them."""
    if not isinstance(content, list):
        return text_of(content), ""
    blocks = [block for block in content if isinstance(block, dict)]
    words = "".join(text_of(block.get("text")) for block in blocks)
    return words, "".join(_in_blocks(block.get("thinking"))[0] for block in blocks)
