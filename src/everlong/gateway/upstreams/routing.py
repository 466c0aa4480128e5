"""Chooses the upstream that answers for a model.

Clients cannot choose a host: a model's name selects one of the upstreams that the operator has named.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

from everlong.errors import Refused
from everlong.gateway.surfaces import AZURE, BEDROCK, VERTEX
from everlong.llm import Endpoint
from everlong.wire import ANTHROPIC, OPENAI_CHAT, OPENAI_RESPONSES

__all__ = ["CLOUD_ADDRESSES", "USUAL_BASE", "USUAL_FORMATS", "Routes", "Upstream"]

#: The formats that most model servers speak. A server without a list of formats counts as speaking only these, so that
#: a new format reaches only upstreams that list it.
USUAL_FORMATS = (OPENAI_CHAT.name, OPENAI_RESPONSES.name, ANTHROPIC.name)
#: How addresses at clouds are written, for people.
CLOUD_ADDRESSES: Mapping[str, str] = {
    AZURE: "https://RESOURCE.openai.azure.com",
    VERTEX: "https://REGION-aiplatform.googleapis.com",
    BEDROCK: "https://bedrock-runtime.REGION.amazonaws.com",
}
LONGEST_NAME = 100  # characters of a model's name that an error repeats
USUAL_BASE = "/v1"
VERSION = re.compile(r"/v[0-9][a-z0-9]*$")
#: Versions of an API that only Gemini has.
NOT_USUAL = ("/v1beta", "/v1alpha")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A server that answers, and the models it answers for: patterns as in a shell, such as "claude-*".

    `formats` are the wire formats it speaks. If it has no key, the client's key is forwarded.
    """

    name: str
    endpoint: Endpoint
    models: tuple[str, ...] = ("*",)
    formats: tuple[str, ...] = USUAL_FORMATS
    #: Its addresses for the paths of a base, if they are not below the root of its own address.
    addresses: Mapping[str, str] = field(default_factory=dict, hash=False)
    #: The cloud if it has only that cloud's own paths; "" for a server with the formats' usual paths.
    only: str = ""
    #: The headers in which it reads a key, the usual one first; () means the format's header.
    key_headers: tuple[str, ...] = ()
    #: All addresses with the same models, including this one, which is the first; () if there is no other.
    sites: tuple["Upstream", ...] = ()
    #: Its share of the conversations; 0 if the order of addresses counts.
    weight: int = 0
    #: The number of this address; 0 is the upstream itself.
    number: int = 0

    @property
    def place(self) -> str:
        """The address for people: the host, and the path if it is unusual."""
        address = urlsplit(self.endpoint.name)
        return address.netloc + ("" if address.path == USUAL_BASE else address.path)

    @property
    def held_as(self) -> str:
        """The name under which answers stored there are recorded."""
        return f"{self.name} {self.place}" if self.number else self.name

    def speaks(self, fmt: str, cloud: str = "") -> bool:
        """Return whether it speaks a format below the usual paths, or below those of a cloud.

        An unknown server may have any cloud's paths.
        """
        provider = self.endpoint.provider
        reached = cloud == self.only if self.only else not cloud or provider in ("", cloud)
        return fmt in self.formats and reached

    def address(self, base: str) -> str:
        """Return the address before the paths of a base. Its own address is for /v1, whatever it ends with.

        Example: with http://host/v1 "/v1beta" -> http://host/v1beta, "" -> http://host; with http://host/paas/v4 "/v1"
        -> http://host/paas/v4
        """
        url = self.endpoint.name
        if base in self.addresses:
            return self.addresses[base]
        if (base and url.endswith(base)) or (base == USUAL_BASE and not url.endswith(NOT_USUAL)):
            return url
        root = VERSION.sub("", url)
        first = "/" + base.split("/")[1] if base else ""  # "/openai" of "/openai/v1" may be in the address already
        return (root.removesuffix(first) if root.endswith(first) else root) + base


class Routes:
    """The upstreams in order. `stripping` names those that expect a model's name without a leading "upstream/"."""

    def __init__(self, upstreams: Sequence[Upstream], *, stripping: frozenset[str] = frozenset()) -> None:
        self.upstreams = tuple(upstreams)
        self._stripping = stripping

    def choose(self, model: str, fmt: str, cloud: str = "") -> Upstream:
        """Return the upstream named before the slash, if there is one; else the first whose pattern matches the model.

        With `cloud`, it must have that cloud's paths. Raises Refused (404, "unknown_model") if no upstream that speaks
        the format answers for the model.
        """
        speaking = [one for one in self.upstreams if one.speaks(fmt, cloud)]
        prefix = model.partition("/")[0].lower() if "/" in model else ""
        named = (one for one in speaking if prefix and one.name.lower() == prefix)
        fitting = (one for one in speaking if any(_fits(model, pattern) for pattern in one.models))
        found = next(named, None) or next(fitting, None)
        if found:
            return found
        if not speaking:
            raise _no_upstream(fmt, cloud)
        patterns = ", ".join(dict.fromkeys(pattern for one in speaking for pattern in one.models))
        problem = f"no upstream serves the model {model[:LONGEST_NAME]!r}"
        raise Refused(f"{problem}; models for {fmt}: {patterns}", status=404, kind="unknown_model")

    def default(self, fmt: str, cloud: str = "") -> Upstream:
        """Return the upstream for a request without a model: the first that speaks the format."""
        found = next((one for one in self.upstreams if one.speaks(fmt, cloud)), None)
        if found is None:
            raise _no_upstream(fmt, cloud)
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


def _no_upstream(fmt: str, cloud: str = "") -> Refused:
    problem = f"no upstream of this gateway supports {fmt}"
    if cloud:
        problem = f"this path is one of {cloud}, where this gateway has no upstream; one is {CLOUD_ADDRESSES[cloud]}"
    return Refused(problem, status=404, kind="unknown_model")
