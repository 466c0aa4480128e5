"""Chooses the upstream that answers for a model, and checks the paths that may be requested of it.

Nothing that a client sends chooses a host: a model's name picks one of the upstreams that the operator has named, and
a path stays below the upstream's own address.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from everlong.errors import Refused
from everlong.llm import Endpoint
from everlong.wire import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES

__all__ = ["USUAL_FORMATS", "Routes", "Upstream", "upstream_path"]

#: The formats that most servers of models speak. A server that names no formats is taken to speak these and no others,
#: so that a new format reaches only upstreams that name it.
USUAL_FORMATS = (OPENAI_CHAT.name, OPENAI_RESPONSES.name, ANTHROPIC.name)
LONGEST_NAME = 100  # characters of a model's name that an error repeats
LONGEST_PATH = 1_024
PLAIN_PATH = re.compile(r"(?:/(?:[A-Za-z0-9._~!$&'()*+,=:-]|%[0-9A-Fa-f]{2})+)+/?")
#: Bytes that may not be percent-encoded in a path: servers differ in how they read them.
NEVER_ENCODED = frozenset(range(0x20)) | frozenset(b"#%./;?@\\\x7f")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A server that answers, and the models it answers for: patterns as in a shell, such as "claude-*".

    `formats` are the wire formats it speaks. Without a key of its own the client's is passed on.
    """

    name: str
    endpoint: Endpoint
    models: tuple[str, ...] = ("*",)
    formats: tuple[str, ...] = USUAL_FORMATS


class Routes:
    """The upstreams in their order. `stripping` names those that want a model's name without "upstream/" before it."""

    def __init__(self, upstreams: Sequence[Upstream], *, stripping: frozenset[str] = frozenset()) -> None:
        self.upstreams = tuple(upstreams)
        self._stripping = stripping

    def choose(self, model: str, fmt: str) -> Upstream:
        """Return the upstream named before the slash, if there is one; else the first whose pattern fits the model.

        Raises Refused (404, "unknown_model") if no upstream that speaks the format answers for it.
        """
        speaking = [one for one in self.upstreams if fmt in one.formats]
        prefix = model.partition("/")[0].lower() if "/" in model else ""
        named = (one for one in speaking if prefix and one.name.lower() == prefix)
        fitting = (one for one in speaking if any(_fits(model, pattern) for pattern in one.models))
        found = next(named, None) or next(fitting, None)
        if found:
            return found
        if not speaking:
            raise _no_upstream(fmt)
        patterns = ", ".join(dict.fromkeys(pattern for one in speaking for pattern in one.models))
        problem = f"no upstream answers for the model {model[:LONGEST_NAME]!r}"
        raise Refused(f"{problem}; those for {fmt}: {patterns}", status=404, kind="unknown_model")

    def default(self, fmt: str) -> Upstream:
        """Return the upstream of a request that names no model: the first that speaks the format."""
        found = next((one for one in self.upstreams if fmt in one.formats), None)
        if found is None:
            raise _no_upstream(fmt)
        return found

    def model_sent(self, upstream: Upstream, model: str) -> str:
        """Return the model's name as the upstream knows it.

        Example: "openai/gpt-5" at the upstream openai -> "gpt-5"; at openrouter it stays
        """
        prefix, slash, rest = model.partition("/")
        own = slash and rest and upstream.name in self._stripping and prefix.lower() == upstream.name.lower()
        return rest if own else model


def _fits(model: str, pattern: str) -> bool:
    return fnmatchcase(model.lower(), pattern.lower())


def _no_upstream(fmt: str) -> Refused:
    return Refused(f"no upstream of this gateway speaks {fmt}", status=404, kind="unknown_model")


# --- paths -----------------------------------------------------------------------------------------


def upstream_path(path: str) -> str:
    """Return the path of a request below /v1, as it came (still encoded), if an upstream's address may precede it.

    Example: "/files/file-1" -> "/files/file-1"; "/../admin", "//host", "/a%2Fb" -> Refused (400, "bad_path")
    """
    whole = path if path.startswith("/") else "/" + path
    dots = any(segment in (".", "..") for segment in whole.split("/"))
    hidden = any(int(digits, 16) in NEVER_ENCODED for digits in re.findall(r"%([0-9A-Fa-f]{2})", whole))
    if dots or hidden or len(whole) > LONGEST_PATH or not PLAIN_PATH.fullmatch(whole):
        raise Refused("this path is not forwarded to an upstream", status=400, kind="bad_path")
    return whole
