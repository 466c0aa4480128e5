"""The headers that pass between a client and its upstream, in both directions.

A client's headers are forwarded unless they are about the client itself, its browser or the connection. An upstream's
headers are forwarded only if they are listed: an answer comes from our address, so we decide what a browser or a proxy
does with it.
"""

import re
from collections.abc import Sequence
from typing import TypeAlias

from multidict import CIMultiDict

from everlong.errors import Refused
from everlong.gateway.clients import KEY_HEADERS, Client, is_signed
from everlong.gateway.surfaces import DEFAULT_FORMAT, FORMATS
from everlong.gateway.upstreams.routing import USUAL_BASE, Upstream
from everlong.wire import SSE, Framing, framing_of

__all__ = [
    "Headers",
    "headers_for",
    "headers_from",
    "key_header_for",
    "safe_type",
    "stream_framing",
    "wait_of",
    "without_allowances",
]

Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")

# --- from a client to its upstream -----------------------------------------------------------------

#: Headers for one connection only, according to HTTP; those that `connection` names are too.
HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade"})
#: Not forwarded to an upstream: we write them ourselves, or they are about the client and its browser.
NOT_SENT = HOP_BY_HOP | {
    b"accept-encoding",
    b"cdn-loop",
    b"content-length",
    b"cookie",
    b"cookie2",
    b"dnt",
    b"expect",
    b"fastly-client-ip",
    b"fly-client-ip",
    b"forwarded",
    b"host",
    b"http2-settings",
    b"origin",
    b"referer",
    b"true-client-ip",
    b"upgrade-insecure-requests",
    b"via",
    b"x-azure-clientip",
    b"x-client-ip",
    b"x-cluster-client-ip",
    b"x-real-ip",
    b"x-requested-with",
}
#: Headers of a signature; they are forwarded with it.
OF_SIGNATURES = frozenset({b"x-amz-content-sha256", b"x-amz-date", b"x-amz-security-token"})
NOT_SENT_FAMILIES = (
    b"access-control-",
    b"cf-",
    b"proxy-",
    b"sec-",
    b"x-everlong-",
    b"x-forwarded-",
    b"x-original-",
)


def headers_for(to: Upstream, client: Client, sent: Headers, base: str = USUAL_BASE) -> CIMultiDict[str]:
    """Return the headers of a request for the upstream's paths below a base.

    Raises Refused for a header that would break the request.
    """
    own, result = to.endpoint, CIMultiDict[str]()
    passes_key, signed = bool(client.key) and not own.key, is_signed(sent)
    # A signature may cover `accept-encoding`.
    unwanted = (NOT_SENT - ({b"accept-encoding"} if signed and passes_key else set())) | _named_by_connection(sent)
    used: set[bytes] = set()
    for name, value in sent:
        low = name.lower()
        if not NAME.fullmatch(name) or CONTROL.search(value):
            raise Refused("a header contains characters that are not allowed", status=400, kind="invalid_header")
        if low in KEY_HEADERS:
            used.add(low)
            if not passes_key:
                continue
        if low in OF_SIGNATURES and not passes_key:
            continue
        if low not in unwanted and not low.startswith(NOT_SENT_FAMILIES):
            result.add(name.decode("ascii"), _header_text(value))
    if own.key:
        header = _credential_header(to, used, base)
        result[header] = f"Bearer {own.key}" if header == "authorization" else own.key
    result.setdefault("accept-encoding", "identity")
    result.update(own.headers)
    return result


def key_header_for(to: Upstream, client: Client, sent: Headers, base: str = USUAL_BASE) -> str:
    """Return the header of the key for our own calls: the one that a client's request has there."""
    used = {name.lower() for name, _ in sent} & KEY_HEADERS
    if to.endpoint.key or not client.key or not used:
        return _credential_header(to, used, base)
    return min(used).decode()


def _credential_header(to: Upstream, used: set[bytes], base: str) -> str:
    """The header of the upstream's key: the format's; for an unknown provider, the one that the client used."""
    spoken = next((each for each in FORMATS.values() if base != USUAL_BASE and base in each.api.bases), None)
    usual = spoken or FORMATS.get(to.endpoint.fmt, DEFAULT_FORMAT)
    read = to.key_headers or (usual.api.key_header,)
    if len(used) == 1 and not to.endpoint.provider:
        return next(iter(used)).decode()
    return next((header for header in read if header.encode() in used), read[0])


def _named_by_connection(headers: Headers) -> set[bytes]:
    listed = [value for name, value in headers if name.lower() == b"connection"]
    return {word.strip().lower() for value in listed for word in value.split(b",")}


def _header_text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


# --- from an upstream to its client ----------------------------------------------------------------

#: Headers of an answer that programs read: when to retry, the provider's request id, the part of a file.
FORWARDED = frozenset(
    {
        b"accept-ranges",
        b"apim-request-id",
        b"cf-ray",
        b"content-range",
        b"deprecation",
        b"mistral-correlation-id",
        b"request-id",
        b"retry-after",
        b"retry-after-ms",
        b"sunset",
        b"x-amzn-requestid",
        b"x-cloud-trace-context",
        b"x-correlation-id",
        b"x-generation-id",
        b"x-request-id",
        b"x-should-retry",
    }
)
FORWARDED_FAMILIES = (
    b"anthropic-",
    b"openai-",
    b"ratelimit",
    b"x-amzn-bedrock-",
    b"x-goog-",
    b"x-groq-",
    b"x-ms-",
    b"x-ratelimit-",
)
ALLOWANCES = (b"anthropic-ratelimit-", b"ratelimit", b"x-ratelimit-")
TYPE, DISPOSITION = b"content-type", b"content-disposition"
LONGEST_VALUE = 4 * 1024  # bytes of a forwarded value
MOST_FORWARDED = 64  # headers of one answer

#: A well-formed content type with its parameters.
WHOLE_TYPE = re.compile(
    rb"([a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+)((?:[ \t]*;[ \t]*[a-z0-9_-]+=(?:[a-z0-9_.+:-]+|\"[a-z0-9 _.+:-]*\"))*)",
    re.IGNORECASE,
)
CHARSET = re.compile(rb"charset=\"?([^\";\s]*)", re.IGNORECASE)
CHARSETS = frozenset({b"utf-8", b"utf8", b"us-ascii", b"ascii", b"iso-8859-1"})
STREAM, JSON_TYPE, BYTES, TEXT = b"text/event-stream", b"application/json", b"application/octet-stream", b"text/plain"
#: Types that no browser runs or renders as a document.
SAFE_TYPES = frozenset(
    {
        STREAM,
        JSON_TYPE,
        BYTES,
        TEXT,
        b"application/jsonl",
        b"application/jsonlines",
        b"application/ndjson",
        b"application/vnd.amazon.eventstream",
        b"application/x-jsonlines",
        b"application/x-ndjson",
        b"image/avif",
        b"image/bmp",
        b"image/gif",
        b"image/jpeg",
        b"image/png",
        b"image/webp",
        b"text/csv",
    }
)


def headers_from(raw: Headers) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer for the client: those that are listed, and always a safe content type."""
    unwanted = _named_by_connection(raw)
    types = [value for name, value in raw if name.lower() == TYPE]
    headers = [(TYPE, safe_type(types[0] if types else b""))]
    for name, value in raw:
        low = name.lower()
        listed = low in FORWARDED or low.startswith(FORWARDED_FAMILIES) or (low == DISPOSITION and _is_saved(value))
        if listed and low not in unwanted and _is_sound(name, value) and len(headers) < MOST_FORWARDED:
            headers.append((low, value.strip(b" \t")))
    return headers


def without_allowances(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer without those about what is left of limits."""
    return [(name, value) for name, value in headers if not name.startswith(ALLOWANCES)]


def safe_type(value: bytes) -> bytes:
    """Return a content type that no browser runs. Example: b"text/html" -> b"text/plain; charset=utf-8"

    A document becomes plain text; any other type that is not known to be harmless becomes plain bytes.
    """
    found = WHOLE_TYPE.fullmatch(value.strip(b" \t"))
    kind = (found[1] if found else value.partition(b";")[0].strip(b" \t")).lower()
    if (
        kind in SAFE_TYPES
        or kind.startswith(b"audio/")
        or (kind.startswith(b"application/") and kind.endswith(b"+json"))
    ):
        if not NAME.fullmatch(kind.replace(b"/", b"", 1)):
            return BYTES
        return kind + (found[2] if found and _reads_well(found[2]) else b"")
    return TEXT + b"; charset=utf-8" if kind.startswith(b"text/") else BYTES


def stream_framing(raw: Headers, expected: Framing = SSE) -> Framing | None:
    """Return the framing of a streamed answer, by its headers; None if it is not a stream."""
    types = [value for name, value in raw if name.lower() == TYPE]
    return framing_of(types[0], expected) if types else None


def wait_of(raw: Headers) -> float | None:
    """Return the seconds that an answer asks to wait; None if it does not say. A date is not read."""
    for header, unit in ((b"retry-after-ms", 0.001), (b"retry-after", 1.0)):
        value = next((value for name, value in raw if name.lower() == header), b"").strip()
        if re.fullmatch(rb"[0-9]{1,9}(?:\.[0-9]{1,9})?", value):
            return float(value) * unit
    return None


def _reads_well(parameters: bytes) -> bool:
    named = CHARSET.search(parameters)
    return named is None or named[1].lower() in CHARSETS


def _is_saved(disposition: bytes) -> bool:
    """Return whether the headers tell a browser to save the answer instead of showing it."""
    return disposition.strip().lower().startswith(b"attachment")


def _is_sound(name: bytes, value: bytes) -> bool:
    return bool(NAME.fullmatch(name)) and not CONTROL.search(value) and len(value) <= LONGEST_VALUE
