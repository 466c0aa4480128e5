"""What a tool gave back, before it enters the conversation: harmless to read, and of a size that can be kept.

The whole result is appended to the thread; how much of it a model is shown is decided where requests are prepared
(`compress`): there it is cut to head and tail with a reference, and the `recall` tool returns what was left out.
`bounded` says the same about a text that does not come by there, or that has to be short for another reason.
"""

import re
from dataclasses import replace

from everlong.agent.definitions import Outcome
from everlong.compress import Cut, Task, as_shown, cut_characters, gap_in_result
from everlong.core import Ref
from everlong.tokens import Counter, estimate

__all__ = ["MOST_KEPT", "bounded", "plain", "received"]

MOST_KEPT = 4_000_000  # characters; more than any window holds
TAIL_SHARE = 1 / 3
LARGEST_COUNTED = 200_000  # characters; the tokens of more are reckoned from as many

#: What a terminal may act on, or a reader cannot see, besides what `as_shown` carries out or leaves out: 8-bit
#: controls, marks that turn the direction of writing round, and the letters of invisible tags.
HIDDEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
NOT_KEPT = "[{left:,} of {total:,} characters are left out here and were not kept]"


def plain(output: str | bytes) -> str:
    """Text that neither moves a cursor nor hides anything: no escape codes, controls, or half characters.

    Example: b"\\x1b[31m10%\\r100%\\x1b[0m \\xff" -> "100% \\ufffd"
    """
    text = output.decode("utf-8", "replace") if isinstance(output, bytes) else output
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return LINE_END.sub("\n", HIDDEN.sub("", as_shown(text)))


def received(outcome: Outcome) -> Outcome:
    """An outcome as it is appended to the thread: plain, and no more of it than is worth keeping."""
    text = outcome.text
    if len(text) <= MOST_KEPT:
        return replace(outcome, text=plain(text))
    cut = cut_characters(Cut(text, len(text), 0), MOST_KEPT, TAIL_SHARE)
    marker = NOT_KEPT.format(left=len(text) - cut.characters, total=len(text))
    return replace(outcome, text="\n".join((plain(text[: cut.head]), marker, plain(text[cut.tail :]))))


def bounded(text: str, most: int, ref: Ref, *, language: str = "en") -> str:
    """The head and the tail of a text in about `most` characters, and how to get the rest: recall with `ref`.

    Cut on line ends where there is one near. The same words that stand in a prepared request.
    """
    if len(text) <= most:
        return text
    cut = cut_characters(Cut(text, len(text), 0), most, TAIL_SHARE)
    task = Task(target=0, counter=Counter(), recall="recall", language=language)
    return cut.joined(gap_in_result(cut, _tokens(text, len(text) - cut.characters), ref, task))


def _tokens(text: str, left_out: int) -> int:
    """About how many tokens so many characters of a text are."""
    sample = text[:LARGEST_COUNTED]
    return estimate(sample) * left_out // max(1, len(sample))
