"""OpenAI Chat Completions, and the many servers that speak it."""

from typing import cast

from everlong.core.messages import Json, JsonObject, Message
from everlong.engine.replies import CallGrew, Reply, Request, Said, Thought
from everlong.llm.formats.shape import Answering, Asking, body_fields, tools_of
from everlong.wire import openai_chat

__all__ = ["FORMAT", "answering", "asking"]

FORMAT = openai_chat.FORMAT
#: Where servers put thinking: DeepSeek and most, OpenRouter.
THINKING = ("reasoning_content", "reasoning")


def asking(request: Request, key: str) -> Asking:
    """The request as it goes out."""
    body = body_fields(request) | openai_chat.render_history(request.messages)
    body |= {"model": request.model, "stream": True, "stream_options": {"include_usage": True}}
    if request.tools:
        body["tools"] = tools_of(request)
    if request.max_tokens is not None:
        # OpenAI's reasoning models know only the newer name; whoever sends it means it.
        name = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
        body[name] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    return Asking("/chat/completions", body, {"authorization": f"Bearer {key}"} if key else {})


class ChatAnswer(Answering):
    """`choices[0].delta` after `choices[0].delta`."""

    def __init__(self) -> None:
        super().__init__()
        self._said: list[str] = []
        self._thought: list[str] = []
        self._thinking = THINKING[0]
        self._calls: dict[int, JsonObject] = {}
        self._beside: JsonObject = {}

    def take(self, event: JsonObject) -> list[Reply]:
        """The pieces of one chunk."""
        self.note_usage(event, FORMAT)
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return []
        if isinstance(choice.get("finish_reason"), str):
            self.stop, self.complete = cast(str, choice["finish_reason"]), True
        delta = choice.get("delta") or choice.get("message")
        return self._taken(delta) if isinstance(delta, dict) else []

    def _taken(self, delta: JsonObject) -> list[Reply]:
        pieces: list[Reply] = []
        for name in THINKING:
            if isinstance(delta.get(name), str) and delta[name]:
                self._thinking = name
                self._thought.append(cast(str, delta[name]))
                pieces.append(Thought(self._thought[-1]))
                break
        if isinstance(delta.get("content"), str) and delta["content"]:
            self._said.append(cast(str, delta["content"]))
            pieces.append(Said(self._said[-1]))
        if isinstance(delta.get("refusal"), str) and delta["refusal"]:
            self._beside["refusal"] = cast(str, self._beside.get("refusal", "")) + cast(str, delta["refusal"])
        calls = delta.get("tool_calls")
        for at, call in enumerate(calls if isinstance(calls, list) else []):
            if isinstance(call, dict):
                pieces.append(self._call_grew(call, at))
        return pieces

    def _call_grew(self, piece: JsonObject, at: int) -> CallGrew:
        index = piece.get("index")
        number = index if isinstance(index, int) else at
        function = piece.get("function")
        named = function if isinstance(function, dict) else {}
        call = self._calls.setdefault(number, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        whole = cast(JsonObject, call["function"])
        call |= {name: value for name, value in piece.items() if name not in ("index", "function", "id", "type")}
        call["id"] = call["id"] or _text(piece.get("id"))
        whole["name"] = cast(str, whole["name"]) + _text(named.get("name"))
        whole["arguments"] = cast(str, whole["arguments"]) + _text(named.get("arguments"))
        return CallGrew(number, _text(piece.get("id")), _text(named.get("name")), _text(named.get("arguments")))

    def message(self) -> Message:
        """Everything said so far."""
        text = "".join(self._said)
        fields: JsonObject = {"role": "assistant", "content": text or None, **self._beside}
        if self._thought:
            fields[self._thinking] = "".join(self._thought)
        if self._calls:
            fields["tool_calls"] = [self._calls[number] for number in sorted(self._calls)]
        elif not text:
            fields["content"] = ""
        return openai_chat.parse(fields)


def answering() -> Answering:
    """A new answer."""
    return ChatAnswer()


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
