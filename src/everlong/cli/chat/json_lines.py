"""Events of a turn as lines of JSON, for programs. Every line is an ASCII object with an `event`."""

import json
import sys
from typing import Any, assert_never

from everlong.agent import AgentEvent, CallEnded, CallStarted, Entered, TurnEnded
from everlong.core import Event
from everlong.engine import CallGrew, Failed, Finished, Meter, Restarted, Said, Thought
from everlong.errors import ContextOverflow

__all__ = ["event_json", "meter_json", "write_line"]


def event_json(event: AgentEvent | Event) -> dict[str, Any]:
    """Return an event as JSON. Example: Said("Hi") -> {"event": "said", "text": "Hi"}"""
    match event:
        case Said(text):
            return {"event": "said", "text": text}
        case Thought(text):
            return {"event": "thought", "text": text}
        case CallGrew(number, call, name, arguments):
            return {"event": "call_grew", "number": number, "call": call, "name": name, "arguments": arguments}
        case Restarted(reason):
            return {"event": "restarted", "reason": reason}
        case Failed(error, begun):
            kind = "overflow" if isinstance(error, ContextOverflow) else "provider"
            return {"event": "failed", "error": str(error), "kind": kind, "begun": begun}
        case Entered(message):
            return {"event": "entered", "text": message.text}
        case TurnEnded(reason, steps, tokens):
            return {"event": "turn_ended", "reason": reason, "steps": steps, "tokens": tokens}
        case Event():
            return _notice(event)
        case Finished() | CallStarted() | CallEnded():
            return _larger(event)
        case _:
            assert_never(event)


def _larger(event: Finished | CallStarted | CallEnded) -> dict[str, Any]:
    match event:
        case Finished(message, usage, stop):
            used = None if usage is None else {name: getattr(usage, name) for name in USAGE}
            return {"event": "finished", "text": message.text, "usage": used, "stop": stop}
        case CallStarted(call, name, arguments):
            return {"event": "call_started", "call": call, "name": name, "arguments": arguments}
        case CallEnded(call, name, outcome, seconds):
            return {
                "event": "call_ended",
                "call": call,
                "name": name,
                "failed": outcome.failed,
                "text": outcome.text,
                "images": len(outcome.images),
                "seconds": round(seconds, 3),
            }
        case _:
            assert_never(event)


USAGE = ("prompt", "cached", "cache_written", "output", "reasoning")


def _notice(event: Event) -> dict[str, Any]:
    """Return an event of the thread; figures that do not apply are left out."""
    figures = {name: getattr(event, name) for name in ("reason", "model", "tokens_before", "tokens_after", "cost")}
    return {"event": event.kind.value} | {name: value for name, value in figures.items() if value not in (None, "")}


def meter_json(meter: Meter, thread: str, model: str) -> dict[str, Any]:
    """Return how full the window is at the end."""
    return {
        "event": "meter",
        "thread": thread,
        "model": model,
        "tokens": meter.tokens,
        "limit": meter.limit if meter.known else None,
        "percent": meter.percent if meter.known else None,
        "certainty": meter.certainty,
    }


def write_line(value: dict[str, Any]) -> None:
    """Write one line to standard output and flush it."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()
