"""Anthropic Messages: write a request and read its reply."""

from bisect import bisect_right

from everlong.core import Json, JsonObject, Message
from everlong.wire.fields import dump, load
from everlong.wire.formats.anthropic.marks import FIELD, keep_allowed, marker, with_marks
from everlong.wire.formats.anthropic.messages import NAME, read_message, write_placed
from everlong.wire.formats.reply_reader import Outgoing, ReplyReader, body_fields, text_of, tools_of
from everlong.wire.refusals.classify import as_error, classify
from everlong.wire.replies import CallGrew, Reply, Request, Said, Thought, breakpoints

__all__ = ["HEADERS", "KEY_HEADER", "PATH", "MessagesReader", "ask"]

PATH = "/messages"

HEADERS = {"anthropic-version": "2023-06-01"}
KEY_HEADER = "x-api-key"
#: The API requires a limit; this is what its own clients send by default.
DEFAULT_LENGTH = 4_096
#: The type of block for a piece whose start event is missing; some proxies drop it.
BEGUN = {"text_delta": "text", "thinking_delta": "thinking"}


def ask(request: Request, key: str) -> Outgoing:
    """Write the request. What will be sent again is marked for the cache, unless the caller's own fields do that."""
    rendered, ends = write_placed(request.messages)
    body = body_fields(request) | rendered
    body |= {"model": request.model, "max_tokens": request.max_tokens or DEFAULT_LENGTH, "stream": True}
    if request.tools:
        body["tools"] = tools_of(request)
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.caching is not None and not body.get(FIELD):
        places = [bisect_right(ends, count) - 1 for count in breakpoints(request)]
        body = with_marks(body, places, marker(request.caching.seconds))
    else:
        body = keep_allowed(body)  # the caller's own marks, including those of its tools
    return Outgoing(PATH, body, HEADERS | ({KEY_HEADER: key} if key else {}))


class MessagesReader(ReplyReader):
    """Reads content blocks that start, grow and stop."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, JsonObject] = {}
        self._arguments: dict[int, str] = {}

    def take(self, event: JsonObject) -> list[Reply]:
        """Return the pieces of one event."""
        match event.get("type"):
            case "message_start":
                self.note_usage(event.get("message"), NAME)
            case "content_block_start":
                return self._started(_number(event), event.get("content_block"))
            case "content_block_delta":
                return self._grew(_number(event), event.get("delta"))
            case "message_delta":
                self.note_usage(event, NAME)
                delta = event.get("delta")
                self.stop = text_of(delta.get("stop_reason") if isinstance(delta, dict) else None) or self.stop
            case "message_stop":
                self.complete = True
            case "message":
                return self._whole(event)
            case "error":
                raise as_error(classify(event))
        return []

    def _whole(self, message: JsonObject) -> list[Reply]:
        """Return the pieces of an answer that is not streamed."""
        self.note_usage(message, NAME)
        self.stop, self.complete = text_of(message.get("stop_reason")), True
        blocks = message.get("content")
        listed = blocks if isinstance(blocks, list) else []
        return [piece for number, block in enumerate(listed) for piece in self._started(number, block)]

    def _started(self, number: int, block: Json) -> list[Reply]:
        if not isinstance(block, dict):
            return []
        self._blocks[number] = dict(block)
        if block.get("type") == "tool_use":
            begun = block.get("input")
            given = dump(begun) if begun else ""
            return [CallGrew(self._call_number(number), text_of(block.get("id")), text_of(block.get("name")), given)]
        return self._spoken(block)

    def _grew(self, number: int, delta: Json) -> list[Reply]:
        if not isinstance(delta, dict):
            return []
        kind = text_of(delta.get("type"))
        if number not in self._blocks and kind in BEGUN:
            self._blocks[number] = {"type": BEGUN[kind]}
        block = self._blocks.get(number)
        if block is None:
            return []
        match kind:
            case "input_json_delta":
                more = text_of(delta.get("partial_json"))
                self._arguments[number] = self._arguments.get(number, "") + more
                ours = more and block.get("type") == "tool_use"
                return [CallGrew(self._call_number(number), "", "", more)] if ours else []
            case "text_delta" | "thinking_delta" | "signature_delta":
                grown = {
                    name: text_of(block.get(name)) + value for name, value in delta.items() if isinstance(value, str)
                }
                grown.pop("type", None)
                block.update(grown)
                return self._spoken(delta)
            case "citations_delta":
                cited = block.get("citations")
                block["citations"] = [*(cited if isinstance(cited, list) else []), delta.get("citation")]
        return []

    def _spoken(self, piece: JsonObject) -> list[Reply]:
        said, thought = text_of(piece.get("text")), text_of(piece.get("thinking"))
        return [Said(said)] if said else [Thought(thought)] if thought else []

    def _call_number(self, number: int) -> int:
        """Return the number of the block among the answer's calls."""
        return sum(1 for at, block in self._blocks.items() if at < number and block.get("type") == "tool_use")

    def message(self) -> Message:
        """Return the answer so far. Arguments that are not complete JSON become an empty object."""
        blocks: list[Json] = []
        for number in sorted(self._blocks):
            block = self._blocks[number]
            if self._arguments.get(number):
                block = block | {"input": _object(self._arguments[number])}
            if block.get("type") != "text" or block.get("text"):
                blocks.append(block)
        return read_message({"role": "assistant", "content": blocks})


def _object(text: str) -> Json:
    try:
        value = load(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _number(event: JsonObject) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else 0
