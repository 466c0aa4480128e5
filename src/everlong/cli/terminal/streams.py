"""Standard output and error on terminals whose encoding lacks characters: words lose some, JSON never does.

What is written as bytes (`fit -o -`, a page) is UTF-8 and does not come by here.
"""

import codecs
import io
import json
import sys
from datetime import datetime

import click

__all__ = ["print_json", "say_what_can_be_said"]


def say_what_can_be_said() -> None:
    """From now on a character that a stream cannot write is a "?" or an escape, not the end of the program."""
    for stream, instead in ((sys.stdout, "replace"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):  # else nobody's stream, or a program's own
            stream.reconfigure(errors=instead)


def print_json(value: object, *, err: bool = False) -> None:
    """JSON on standard output or error. Where the stream is not UTF-8, and for half a surrogate pair: as escapes."""
    encoding = getattr(sys.stderr if err else sys.stdout, "encoding", None) or "utf-8"
    whole = codecs.lookup(encoding).name.startswith("utf")
    text = json.dumps(value, ensure_ascii=not whole, indent=2, default=_plain)
    click.echo(text.encode("utf-8", "backslashreplace").decode(), err=err)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(type(value).__name__)
