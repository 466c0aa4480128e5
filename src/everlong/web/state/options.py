"""The options of a thread: instructions to the model, how freely and how long it answers, and whether it has tools.

They are a part of the choices for a thread, and of the assistants that a person keeps. What is not set follows the
model, the server or the settings.
"""

from dataclasses import dataclass

from everlong.core import JsonObject
from everlong.errors import Refused
from everlong.web.fields import decimal, flag, invalid, number, optional_text

__all__ = ["NO_OPTIONS", "Options", "changed_options", "stored_options"]

LONGEST_SYSTEM = 32_000  # characters
HOTTEST = 2.0
LONGEST_ANSWER = 1_000_000  # tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a person set for the answers of a thread. None means not set, as does "" for the instructions."""

    system: str = ""
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    tools: bool | None = None

    def shown(self) -> JsonObject:
        """Return the options as the page reads them and the store keeps them."""
        return {
            "system": self.system,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_tokens,
            "tools": self.tools,
        }


NO_OPTIONS = Options()


def changed_options(options: Options, body: JsonObject) -> Options:
    """Return the options with the fields of a body; missing fields stay, null unsets. Raises Refused if one is wrong.

    Example: {"temperature": 0.2, "max_tokens": null} -> colder, and as long as the model likes
    """
    unknown = sorted(set(body) - set(NO_OPTIONS.shown()))
    if unknown:
        raise invalid(f"there is no option {unknown[0][:80]!r}; the options are {', '.join(NO_OPTIONS.shown())}")
    system = options.system
    if "system" in body:
        system = (optional_text(body, "system", most=LONGEST_SYSTEM) or "").strip()
    temperature = decimal(body, "temperature", 0, HOTTEST) if "temperature" in body else options.temperature
    top_p = decimal(body, "top_p", 0, 1) if "top_p" in body else options.top_p
    if top_p == 0:
        raise invalid("top_p must be more than 0")
    max_tokens = options.max_tokens
    if "max_tokens" in body:
        max_tokens = number(body, "max_tokens")
        if max_tokens is not None and not 1 <= max_tokens <= LONGEST_ANSWER:
            raise invalid(f"max_tokens must be 1 to {LONGEST_ANSWER:,} tokens")
    tools = flag(body, "tools") if "tools" in body else options.tools
    return Options(system=system, temperature=temperature, top_p=top_p, max_tokens=max_tokens, tools=tools)


def stored_options(stored: object) -> Options:
    """Return options that were stored; each that cannot be read counts as not set."""
    options = NO_OPTIONS
    for name, value in stored.items() if isinstance(stored, dict) else ():
        try:
            options = changed_options(options, {name: value})
        except Refused:
            continue
    return options
