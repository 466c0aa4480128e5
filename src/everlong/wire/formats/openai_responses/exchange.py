"""OpenAI Responses: write a request and read its reply."""

from everlong.core import Json, JsonObject, Message, Reasoning, Role, Text
from everlong.errors import ProviderError
from everlong.wire.formats.openai_responses.items import NAME
from everlong.wire.formats.openai_responses.messages import read_items, write_history
from everlong.wire.formats.reply_reader import Outgoing, ReplyReader, body_fields, text_of, tools_of
from everlong.wire.refusals.classify import as_error, classify
from everlong.wire.replies import CallGrew, Reply, Request, Said, Thought

__all__ = ["PATH", "WHOLE", "ResponsesReader", "ask"]

PATH = "/responses"

WORDS = ("response.output_text.delta", "response.refusal.delta")
THOUGHTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
ENDS = ("response.completed", "response.incomplete")
SEALED = "reasoning.encrypted_content"
WHOLE = frozenset({"completed", "incomplete"})  # the statuses of a finished answer


def ask(request: Request, key: str) -> Outgoing:
    """Write the request. The provider stores nothing unless the caller asks for it."""
    body: JsonObject = {"store": False} | body_fields(request) | write_history(request.messages)
    body |= {"model": request.model, "stream": True}
    if body["store"] is False:
        body |= _unstored(body)
    if request.tools:
        body["tools"] = tools_of(request)
    if request.max_tokens is not None:
        body["max_output_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    return Outgoing(PATH, body, {"authorization": f"Bearer {key}"} if key else {})


def _unstored(body: JsonObject) -> JsonObject:
    """Return the changes for an unstored request: ask for sealed reasoning, and drop reasoning that is only an id."""
    items, wanted = body.get("input"), body.get("include")
    included = wanted if isinstance(wanted, list) else []
    changed: JsonObject = {}
    if isinstance(items, list):
        changed["input"] = [item for item in items if not _is_unsealed(item)]
    if "reasoning" in body and SEALED not in included:
        changed["include"] = [*included, SEALED]
    return changed


def _is_unsealed(item: Json) -> bool:
    return isinstance(item, dict) and item.get("type") == "reasoning" and not item.get("encrypted_content")


class ResponsesReader(ReplyReader):
    """Reads output items that are added, grow and are done."""

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[int, JsonObject] = {}
        self._calls: dict[int, int] = {}
        self._said: list[str] = []

    def take(self, event: JsonObject) -> list[Reply]:
        """Return the pieces of one event."""
        kind = event.get("type")
        number = event.get("output_index")
        at = number if isinstance(number, int) else 0
        text = text_of(event.get("delta"))
        if event.get("object") == "response":
            return self._whole(event)
        if kind in WORDS:
            self._said.append(text)
            return [Said(text)] if text else []
        if kind in THOUGHTS:
            return [Thought(text)] if text else []
        if kind == "response.function_call_arguments.delta":
            return [CallGrew(self._calls.setdefault(at, len(self._calls)), "", "", text)] if text else []
        if kind in ("response.output_item.added", "response.output_item.done"):
            return self._item(at, event.get("item"), done=kind.endswith("done"))
        if kind in ENDS:
            self._ended(event.get("response"))
        elif kind in ("error", "response.failed"):
            raise _error(event)
        return []

    def _item(self, at: int, item: Json, *, done: bool) -> list[Reply]:
        if not isinstance(item, dict):
            return []
        if done:
            self._items[at] = item
            return []
        if item.get("type") != "function_call":
            return []
        call = self._calls.setdefault(at, len(self._calls))
        return [CallGrew(call, str(item.get("call_id") or ""), str(item.get("name") or ""), "")]

    def _whole(self, response: JsonObject) -> list[Reply]:
        """Return the pieces of an answer that is not streamed."""
        if response.get("status") == "failed":
            raise _error({"response": response})
        self._ended(response)
        message = self.message()
        pieces: list[Reply] = [
            Thought(part.text) for part in message.parts if isinstance(part, Reasoning) and part.text
        ]
        pieces += [Said(message.text)] if message.text else []
        return [*pieces, *(CallGrew(at, call.id, call.name, call.arguments) for at, call in enumerate(message.calls))]

    def _ended(self, response: Json) -> None:
        self.complete = True
        if not isinstance(response, dict):
            return
        self.note_usage(response, NAME)
        if response.get("status") in WHOLE:
            self.name = text_of(response.get("id"))
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        self.stop = str(reason) if reason else "completed"
        output = response.get("output")
        if isinstance(output, list) and len(output) > len(self._items):
            self._items = {at: item for at, item in enumerate(output) if isinstance(item, dict)}

    def message(self) -> Message:
        """Return the answer with all its items; if the server sent only text, that text."""
        items: list[Json] = [self._items[at] for at in sorted(self._items)]
        if not items and self._said:
            return Message(Role.ASSISTANT, (Text("".join(self._said)),), origin=NAME)
        messages = read_items(items)
        parts = tuple(part for message in messages for part in message.parts)
        return messages[0] if len(messages) == 1 else Message(Role.ASSISTANT, parts, origin=NAME)


def _error(event: JsonObject) -> ProviderError:
    response = event.get("response")
    error = response.get("error") if isinstance(response, dict) else None
    return as_error(classify({"error": error} if error else event))
