"""Standard output and error on terminals whose encoding lacks characters: text loses them, JSON never does.

Output that is written as bytes (`fit -o -`, a page) is UTF-8 and does not pass through here.
"""

import codecs
import io
import json
import sys
from datetime import datetime

import click

__all__ = ["print_json", "tolerate_encodings"]


def tolerate_encodings() -> None:
    """Let the streams write "?" or an escape for a character that they cannot encode, instead of failing."""
    for stream, instead in ((sys.stdout, "replace"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):  # not if there is no stream, or if a program replaced it
            stream.reconfigure(errors=instead)


def print_json(value: object, *, err: bool = False) -> None:
    """Print JSON on standard output or error; characters that the stream cannot encode are escaped."""
    encoding = getattr(sys.stderr if err else sys.stdout, "encoding", None) or "utf-8"
    whole = codecs.lookup(encoding).name.startswith("utf")
    text = json.dumps(value, ensure_ascii=not whole, indent=2, default=_plain)
    click.echo(text.encode("utf-8", "backslashreplace").decode(), err=err)


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(type(value).__name__)
