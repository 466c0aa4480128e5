"""Events as stored text, and back; used by every store that keeps text."""

import json
from dataclasses import asdict
from datetime import datetime

from everlong.core import Event, EventKind, JsonObject
from everlong.errors import StoreError

__all__ = ["decode_event", "encode_event", "event_fields", "event_in"]


def event_fields(event: Event) -> JsonObject:
    """The event as a JSON object; what it does not say is left out."""
    said = {name: value for name, value in asdict(event).items() if value not in (None, "")}
    return said | {"id": event.id, "kind": event.kind.value, "time": event.time.isoformat()}


def event_in(fields: JsonObject) -> Event:
    """What `event_fields` gave. Raises StoreError for anything else."""
    try:
        kind, time = EventKind(str(fields["kind"])), datetime.fromisoformat(str(fields["time"]))
        return Event(**{**fields, "kind": kind, "time": time})  # type: ignore[arg-type]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"a stored event cannot be read: {error}") from error


def encode_event(event: Event) -> str:
    """The event as one line of JSON."""
    return json.dumps(event_fields(event), separators=(",", ":"))


def decode_event(text: str) -> Event:
    """What `encode_event` wrote. Raises StoreError for anything else."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"a stored event cannot be read: {error}") from error
    return event_in(fields)
