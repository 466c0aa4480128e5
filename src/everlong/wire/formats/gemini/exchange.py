"""Gemini: write a request and read its reply."""

from typing import cast

from everlong.core import Json, JsonObject, Message
from everlong.wire.fields import dump
from everlong.wire.formats.gemini.messages import read_message, write_history
from everlong.wire.formats.gemini.parts import NAME
from everlong.wire.formats.reply_reader import Outgoing, ReplyReader, body_fields, text_of, tools_of
from everlong.wire.refusals.classify import as_error, classify
from everlong.wire.replies import CallGrew, Reply, Request, Said, Thought

__all__ = ["KEY_HEADER", "GeminiReader", "ask"]

KEY_HEADER = "x-goog-api-key"

SIGNATURE = "thoughtSignature"
UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~")  # not escaped in a path


def ask(request: Request, key: str) -> Outgoing:
    """Write the request."""
    body = body_fields(request) | write_history(request.messages)
    if request.tools:
        body["tools"] = tools_of(request)
    settings = body.get("generationConfig")
    config: JsonObject = dict(settings) if isinstance(settings, dict) else {}
    if request.max_tokens is not None:
        config["maxOutputTokens"] = request.max_tokens
    if request.temperature is not None:
        config["temperature"] = request.temperature
    if config:
        body["generationConfig"] = config
    path = f"/models/{_quoted(request.model.removeprefix('models/'))}:streamGenerateContent?alt=sse"
    return Outgoing(path, body, {KEY_HEADER: key} if key else {})


def _quoted(name: str) -> str:
    """Return a model's name as a segment of a path. Example: "a b/c" -> "a%20b%2Fc" """
    return "".join(chr(byte) if byte in UNRESERVED else f"%{byte:02X}" for byte in name.encode())


class GeminiReader(ReplyReader):
    """Reads chunks with a candidate, whose parts are collected."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[JsonObject] = []
        self._calls = 0

    def take(self, event: JsonObject) -> list[Reply]:
        """Return the pieces of one chunk."""
        if "error" in event:
            raise as_error(classify(event))
        self.note_usage(event, NAME)
        candidates = event.get("candidates")
        candidate = candidates[0] if isinstance(candidates, list) and candidates else None
        if not isinstance(candidate, dict):
            self._blocked(event.get("promptFeedback"))
            return []
        if isinstance(candidate.get("finishReason"), str):
            self.complete = True
            self.stop = self.stop or cast(str, candidate["finishReason"])  # STOP also ends an answer with calls
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        pieces: list[Reply] = []
        for part in parts if isinstance(parts, list) else []:
            if isinstance(part, dict):
                pieces += self._taken(part)
        return pieces

    def _blocked(self, feedback: Json) -> None:
        """Record that the prompt was blocked and gets no answer."""
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            self.stop, self.complete = "SAFETY", True

    def _taken(self, part: JsonObject) -> list[Reply]:
        text = part.get("text")
        if isinstance(text, str):
            self._add_text(part, text)
            return [] if not text else [Thought(text)] if part.get("thought") else [Said(text)]
        self._parts.append(part)
        call = part.get("functionCall")
        if not isinstance(call, dict):
            return []
        self.stop = "tool_calls"
        self._calls += 1
        return [
            CallGrew(self._calls - 1, text_of(call.get("id")), text_of(call.get("name")), dump(call.get("args") or {}))
        ]

    def _add_text(self, part: JsonObject, text: str) -> None:
        """Add a text to the last one of the same kind. Signed text stays separate, as Google requires."""
        last = self._parts[-1] if self._parts else None
        same = last is not None and isinstance(last.get("text"), str) and last.get("thought") == part.get("thought")
        if last is not None and same and SIGNATURE not in last and SIGNATURE not in part:
            last |= {**part, "text": cast(str, last["text"]) + text}
        else:
            self._parts.append(dict(part))

    def message(self) -> Message:
        """Return the answer so far."""
        parts: list[Json] = [part for part in self._parts if part.get("text") != "" or SIGNATURE in part]
        return read_message({"role": "model", "parts": parts})
