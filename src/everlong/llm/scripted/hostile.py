"""Hostile providers, ready to use: scripts that always refuse, lie, break off or talk nonsense.

A program that calls one should end after a few calls, with an answer or one clear error.
"""

import json
import random
from collections.abc import Callable, Mapping

from everlong.llm.scripted.script import Answer, Broken, Raw, ReceivedRequest, Refusal, Script, Step
from everlong.wire import HOSTED_SIGNS, SERVED_SIGNS, SHARED_SIGNS, OverflowSign, Usage

__all__ = ["HOSTILE", "OVERFLOWS", "always", "breaks_at", "overflows_at_random", "reports", "window_body"]

#: Every wording of an overflow that is known, with its sample.
OVERFLOWS: tuple[OverflowSign, ...] = (*HOSTED_SIGNS, *SERVED_SIGNS, *SHARED_SIGNS)

TOO_LONG = '{"error":{"message":"prompt is too long: 900000 tokens > 200000 maximum","type":"invalid_request_error"}}'
MALFORMED = (
    '{"error":{"message":"messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: '
    'call_0. Each `tool_use` block must have a corresponding `tool_result` block in the next message."}}'
)
ERROR_EVENT = b'data: {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}\n\n'
PAGE = b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
SPACES = b" " * (1 << 20)
ODDS = 3


def always(step: Step) -> Script:
    """Return a script that takes the same step every time."""
    return lambda _: step


def overflows_at_random(seed: int, odds: int = ODDS) -> Script:
    """Return a script that refuses one request in `odds` as too long, by dice with a fixed seed."""
    dice = random.Random(seed)
    return lambda asked: Refusal(400, TOO_LONG) if dice.randrange(odds) == 0 else Answer(text=f"Answer {asked.number}.")


def reports(prompt: Callable[[ReceivedRequest], int]) -> Script:
    """Return a script that answers and reports whatever size of the prompt it is given."""
    return lambda asked: Answer(text=f"Answer {asked.number}.", usage=Usage(prompt=prompt(asked), output=5))


def breaks_at(pieces: int) -> Script:
    """Return a script whose connection is lost after this many events of the stream."""
    answer = Answer(text="one two three four five six", thinking="Hm.", calls=(("read_file", "{}"),))
    return always(Broken(answer, pieces))


def window_body(sign: OverflowSign) -> str:
    """Return the refusal of a `Window` in the words of that provider, with the figures of each request."""
    said = sign.sample
    for figure, name in ((sign.limit, "{window}"), (sign.requested, "{tokens}")):
        said = said.replace(str(figure), name) if figure is not None else said
    return json.dumps({"error": {"message": said}}, ensure_ascii=False)


def _summed() -> Script:
    total = 0

    def script(asked: ReceivedRequest) -> Step:
        nonlocal total
        total += asked.tokens
        return Answer(text=f"Answer {asked.number}.", usage=Usage(prompt=total, output=5))

    return script


#: Each entry makes a new script, so that no state is shared.
HOSTILE: Mapping[str, Callable[[], Script]] = {
    "overflows always": lambda: always(Refusal(400, TOO_LONG)),
    "always overflows, without figures": lambda: always(Refusal(413, "")),
    "overflows at random": lambda: overflows_at_random(4711),
    "reports far too much": lambda: reports(lambda asked: asked.tokens * 50),
    "reports twice as much": lambda: reports(lambda asked: asked.tokens * 2),
    "reports far too little": lambda: reports(lambda _: 1),
    "reports a third": lambda: reports(lambda asked: asked.tokens // 3),
    "reports sums": _summed,
    "breaks at once": lambda: breaks_at(0),
    "breaks after a piece": lambda: breaks_at(2),
    "breaks later": lambda: breaks_at(3),
    "always 429": lambda: always(Refusal(429, '{"error":{"message":"Rate limit reached"}}')),
    "always 503": lambda: always(Refusal(503, "upstream connect error")),
    "always a malformed history": lambda: always(Refusal(400, MALFORMED)),
    "an error inside the stream": lambda: always(Raw(chunk=ERROR_EVENT)),
    "says nothing": lambda: always(Answer(text="")),
    "says nothing, reports nothing": lambda: always(Answer(text="", reported=False)),
    "says nothing: no space left": lambda: always(Answer(text="", stop="length")),
    "an empty stream": lambda: always(Raw(chunk=b"")),
    "endless white space": lambda: always(Raw(chunk=SPACES, times=1 << 10)),
    "a page": lambda: always(Raw(chunk=PAGE, content_type="text/html")),
    "an error page": lambda: always(Refusal(502, PAGE.decode())),
    "no JSON": lambda: always(Raw(chunk=b"data: {'a': }\n\n")),
    "other JSON": lambda: always(
        Raw(chunk=b'data: {"choices":[{"delta":7,"message":[]}],"candidates":3}\n\ndata: 7\n\n')
    ),
    "a body that is not an object": lambda: always(Raw(chunk=b"[1, 2]", content_type="application/json")),
}
