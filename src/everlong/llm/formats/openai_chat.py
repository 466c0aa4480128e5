"""OpenAI Chat Completions, and the many servers that speak it."""

from typing import cast

from everlong.core import Json, JsonObject, Message
from everlong.engine import Reply, Request, Said, Thought
from everlong.llm.formats.growing_calls import GrowingCalls
from everlong.llm.formats.shape import Answering, Asking, body_fields, text_of, tools_of
from everlong.wire import openai_chat

__all__ = ["FORMAT", "answering", "asking"]

FORMAT = openai_chat.FORMAT
#: Where servers put thinking: DeepSeek and most, OpenRouter.
THINKING = ("reasoning_content", "reasoning")
#: OpenRouter's signed form of the same, in pieces too; these of its fields grow.
SIGNED = "reasoning_details"
GROWING = ("text", "summary")


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
        self._calls = GrowingCalls()
        self._signed: list[JsonObject] = []
        self._refused = ""

    def take(self, event: JsonObject) -> list[Reply]:
        """The pieces of one chunk."""
        self.note_usage(event, FORMAT)
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return []
        self.note_usage(choice.get("usage"), FORMAT)  # Moonshot's place for it
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
        """Pieces of the same number and kind are one."""
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
        """Everything said so far."""
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
        return openai_chat.parse(fields)


def answering() -> Answering:
    """A new answer."""
    return ChatAnswer()


def _in_blocks(content: Json) -> tuple[str, str]:
    """The words and the thoughts of a content: text, or blocks as Mistral's thinking models send them."""
    if not isinstance(content, list):
        return text_of(content), ""
    blocks = [block for block in content if isinstance(block, dict)]
    words = "".join(text_of(block.get("text")) for block in blocks)
    return words, "".join(_in_blocks(block.get("thinking"))[0] for block in blocks)
