"""The requests of a run as conversations: where a prefix broke, what was compacted, and whether that was due. Pure.

A request of the client continues the earlier one with which it shares the longest beginning. Clients append; some also
replace their last messages in each request (a reminder, the files of the chat). What reached the model for the earlier
request, without the messages at its end that the client replaced, must then be the beginning of what reaches the model
now, unless there was a compaction in between. Law 6 says how far apart compactions are.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from everlong.core import Budget, Json, JsonObject, Message, Protection, protected
from everlong.lab.clients.witness import MARK, Exchange
from everlong.llm import ReceivedRequest
from everlong.tokens import Counter
from everlong.wire import FORMATS, Api, Document, Format

__all__ = [
    "COUNTED",
    "NEW_SHARE",
    "REFUSED_FROM",
    "Continued",
    "Pair",
    "Sizes",
    "begins",
    "continued",
    "format_of",
    "items_of",
    "law_faults",
    "pairs_of",
]

REFUSED_FROM = 400  # HTTP status
NEW_SHARE = 0.4  # of the movable part, between two compactions: law 6
COUNTED = 0.9  # one counter may find this share of what another finds in the same text
#: The headers with which the gateway reports compactions, and windows that it has just learned.
COMPACTIONS, BEHIND, RECOVERED = "x-everlong-compactions", "x-everlong-compactions-behind", "x-everlong-recovered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An answered request of the client, and the request at the model that was answered for it.

    `asked` and `sent` are their items as texts; the first item is everything before the messages. `tokens` are those of
    the client's prompt; `movable` is the part of the window that a compaction can move.
    """

    number: int
    asked: tuple[str, ...]
    sent: tuple[str, ...]
    #: How many leading items are the same in all conversations: tools and system text.
    head: int = 1
    tokens: int = 0
    movable: int = 0
    compactions: int = 0
    #: Whether the gateway did not report compactions: the head of the answer was sent during the preparation.
    unreported: bool = False
    #: Whether one of them was made after the answer to the previous request.
    behind: bool = False
    #: Whether a window was learned meanwhile: such a compaction is an exception.
    learned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """A pair with the one that it continues; None if it begins a conversation. `broke` says that the prefix changed.

    `new` is how much the client's prompt has grown since the last compaction of the conversation; None if there was
    none, or if the client changed what it covered. A compaction after an answer was made somewhere between two
    requests, so `new` is then an upper bound.
    """

    pair: Pair
    before: Pair | None = None
    broke: bool = False
    new: int | None = None


def continued(pairs: Sequence[Pair]) -> list[Continued]:
    """Return the pairs, each with what it continues."""
    found: list[Continued] = []
    compacted: dict[int, Continued] = {}  # the pair of the last compaction, by a pair's number
    for at, pair in enumerate(pairs):
        before = _before(pair, pairs[:at])
        last = None if before is None else compacted.get(before.number)
        broke = before is not None and not begins(pair.sent, _standing(before, pair))
        one = Continued(pair=pair, before=before, broke=broke)
        if last is not None and not _rewritten(last, pair):
            one = replace(one, new=pair.tokens - _compacted_at(last))
        found.append(one)
        now = one if pair.compactions else last
        if now is not None:
            compacted[pair.number] = now
    return found


def law_faults(requests: Iterable[Continued]) -> Iterator[str]:
    """Yield what law 6 forbids: a prefix that breaks without a compaction, and compactions that follow too soon."""
    for one in requests:
        pair = one.pair
        if one.broke and one.before is not None and not pair.compactions and not pair.unreported:
            yield f"request {pair.number} begins otherwise than request {one.before.number}, without a compaction"
        least = int(NEW_SHARE * pair.movable)
        if pair.compactions and not pair.learned and one.new is not None and one.new < COUNTED * least:
            yield f"request {pair.number} was compacted again after {one.new} new tokens, {least} are due at least"


def _before(pair: Pair, earlier: Sequence[Pair]) -> Pair | None:
    """Return the pair that this one continues; None if it shares no message with any.

    A client that leaves out most of a conversation, as after its own compaction, begins another one.
    """
    shared = {other.number: _shared(pair.asked, other.asked) for other in earlier}
    alike = [
        other for other in earlier if 2 * shared[other.number] > len(other.asked) and shared[other.number] > pair.head
    ]
    return max(alike, key=lambda other: (shared[other.number], other.number), default=None)


def _standing(before: Pair, pair: Pair) -> Sequence[str]:
    """Return what was sent before, without the items at its end that the client has replaced since."""
    replaced = before.asked[_shared(pair.asked, before.asked) :]
    end = len(before.sent)
    while end and len(before.sent) - end < len(replaced) and before.sent[end - 1] in replaced:
        end -= 1
    return before.sent[:end]


def _compacted_at(one: Continued) -> int:
    """Return the size of the client's prompt when the compaction was made, at the earliest."""
    return one.before.tokens if one.pair.behind and one.before is not None else one.pair.tokens


def _rewritten(compacted: Continued, pair: Pair) -> bool:
    """Whether the client has since changed what a compaction covered, so that another one was necessary.

    What it replaces with every request does not count, because that is expected.
    """
    asked, before = compacted.pair.asked, compacted.before
    whole = _shared(asked[::-1], compacted.pair.sent[::-1])  # items at the end that are sent unchanged
    replaced = 0 if before is None else len(before.asked) - _shared(asked, before.asked)
    return _shared(asked, pair.asked) < len(asked) - max(whole, replaced)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many leading items are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def begins(items: Sequence[str], start: Sequence[str]) -> bool:
    """Return whether a request begins with all items of another one."""
    return tuple(items[: len(start)]) == tuple(start)


# --- reading the records -----------------------------------------------------------------------------


def format_of(exchange: Exchange) -> Format | None:
    """Return the format of a request to the model; None for any other. Example: /v1/messages?beta=true"""
    path = exchange.path.partition("?")[0]
    return next((known for known in FORMATS.values() if _asks(path, known.api)), None)


def _asks(path: str, api: Api) -> bool:
    """Whether it is a path of a model in that API; some paths name the model."""
    ends = [each.partition("{model}")[2] or each for each in (api.path, api.stream_path) if each]
    return path.endswith(tuple(ends))


def pairs_of(exchanges: Sequence[Exchange], requests: Iterable[ReceivedRequest], window: int) -> list[Pair]:
    """Return the answered requests of the client, each with the last request at the model that it caused."""
    became = {request.headers.get(MARK, ""): request for request in requests}
    sizes = Sizes(window)
    pairs = []
    for number, exchange in enumerate(exchanges):
        spoken, request = format_of(exchange), became.get(str(number))
        if spoken is not None and request is not None and exchange.status < REFUSED_FROM and not exchange.trouble:
            pairs.append(_pair(number, spoken, exchange, request, sizes))
    return pairs


def _pair(number: int, spoken: Format, exchange: Exchange, request: ReceivedRequest, sizes: "Sizes") -> Pair:
    body: JsonObject = json.loads(exchange.body)
    headers = {name.lower(): value for name, value in exchange.answer_headers.items()}
    document = spoken.read_body(body)
    asked = items_of(spoken, body)
    return Pair(
        number=number,
        asked=asked,
        sent=items_of(spoken, json.loads(request.body)),
        head=1 + len(asked[1:]) - len(_after_system(asked[1:])),
        tokens=sizes.prompt(document),
        movable=sizes.movable(document, spoken.api.length(body), spoken.api.thinking_length(body)),
        compactions=int(headers.get(COMPACTIONS, 0)),
        unreported=COMPACTIONS not in headers,
        behind=headers.get(BEHIND, "0") != "0",
        learned=headers.get(RECOVERED, "0") != "0",
    )


def items_of(spoken: Format, body: JsonObject) -> tuple[str, ...]:
    """Return what comes before the messages, and the messages, as texts without cache marks."""
    plain = body if spoken.marks is None else spoken.marks.remove(body)
    messages = plain.get(spoken.api.messages)
    items = messages if isinstance(messages, list) else [messages]
    return (_text([plain.get(spoken.api.system), plain.get("tools")]), *(_text(_canonical(item)) for item in items))


def _canonical(item: Json) -> Json:
    """Return a message whose single text is a string, because clients write it either way."""
    content = item.get("content") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(content, list) or len(content) != 1:
        return item
    (block,) = content
    lone = isinstance(block, dict) and block.keys() == {"type", "text"}
    return item | {"content": block["text"]} if lone and isinstance(block, dict) else item


def _after_system(items: Sequence[str]) -> Sequence[str]:
    """Return the items from the first one on that is not system text."""
    roles = (json.loads(item) for item in items)
    first = (
        at
        for at, item in enumerate(roles)
        if not isinstance(item, dict) or item.get("role") not in ("system", "developer")
    )
    return items[next(first, len(items)) :]


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


@dataclass(slots=True)
class Sizes:
    """Counts like the scripted model, each message once."""

    window: int
    counter: Counter = field(default_factory=lambda: Counter("gpt-4o"))
    known: dict[Message, int] = field(default_factory=dict)

    def prompt(self, document: Document) -> int:
        """Return the tokens of the prompt."""
        return sum(map(self._message, document.messages)) + self.counter.tools(document.tools)

    def movable(self, document: Document, asked: int | None, thinking: int = 0) -> int:
        """Return what a compaction can move; an answer of `asked` tokens is reserved first.

        The part of it for thinking cannot be reduced.
        """
        stays = (at for at, why in protected(document.messages).items() if why is not Protection.UNREAD)
        fixed = sum(self._message(document.messages[at]) for at in stays)
        tools = self.counter.tools(document.tools)
        return Budget.of(self.window, requested=asked, tools=tools, fixed=fixed, least=thinking + 1).movable

    def _message(self, message: Message) -> int:
        if message not in self.known:
            self.known[message] = self.counter.message(message)
        return self.known[message]
