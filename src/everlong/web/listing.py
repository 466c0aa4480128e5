"""Asking a source which models it has, in the way of its format. What is no model to talk to is left out."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp

from everlong.core import Json
from everlong.errors import Refused
from everlong.llm import Endpoint, read_whole
from everlong.windows import row_window

__all__ = ["Listed", "list_models"]

SECONDS = 8.0
LARGEST = 8 * 1024 * 1024  # bytes
MOST = 2_000
LONGEST = 200  # characters of a name, and of what a server says is wrong
NO_TALK = re.compile(
    r"embed|whisper|\btts|dall-e|moderation|-image|audio|realtime|transcribe|rerank|\bsora|babbage|davinci|\bveo|imagen"
)
#: Where each format has its list, and how it takes the key.
PATHS: Mapping[str, str] = {"anthropic": "/models?limit=1000", "gemini": "/models?pageSize=1000"}
REASONS = {401: "it does not take the key", 403: "it does not take the key", 404: "it lists no models there"}


@dataclass(frozen=True, slots=True)
class Listed:
    """A model of a source; `window` is what the list says it serves."""

    name: str
    window: int | None = None


async def list_models(endpoint: Endpoint) -> tuple[Listed, ...]:
    """The models that a source names. Raises Refused with one line that says what is wrong."""
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    url = endpoint.name + PATHS.get(endpoint.fmt, "/models")
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(url, headers=_headers(endpoint), allow_redirects=False) as response,
        ):
            if response.status != 200:
                raise _refused(REASONS.get(response.status, f"it answers with status {response.status}"))
            listed = json.loads(await read_whole(response, LARGEST))
    except TimeoutError:
        raise _refused(f"no answer within {SECONDS:g} s") from None
    except (aiohttp.ClientError, OSError) as error:
        raise _refused(f"it cannot be reached: {_line(error)}") from None
    except (ValueError, RecursionError):
        raise _refused("it answers with something that is no list of models") from None
    return _read(listed)


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = dict(endpoint.headers)
    match endpoint.fmt:
        case "anthropic":
            headers["anthropic-version"] = "2023-06-01"
            if endpoint.key:
                headers["x-api-key"] = endpoint.key
        case "gemini" if endpoint.key:
            headers["x-goog-api-key"] = endpoint.key
        case _ if endpoint.key:
            headers["authorization"] = f"Bearer {endpoint.key}"
        case _:
            pass
    return headers


def _read(listed: Json) -> tuple[Listed, ...]:
    rows: Json = listed
    if isinstance(listed, dict):
        rows = listed.get("data", listed.get("models"))
    if not isinstance(rows, list):
        raise _refused("it answers with something that is no list of models")
    found: dict[str, Listed] = {}
    for row in rows[:MOST]:
        name = row.get("id", row.get("name")) if isinstance(row, dict) else None
        if not isinstance(name, str) or not name or len(name) > LONGEST or not isinstance(row, dict):
            continue
        name = name.removeprefix("models/")
        served = row_window(row)
        if not NO_TALK.search(name.lower()):
            found[name] = Listed(name, served.context if served is not None and served.in_force else None)
    return tuple(found.values())


def _refused(reason: str) -> Refused:
    return Refused(f"the source was not added: {reason}", status=422, kind="source")


def _line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:LONGEST]
