"""Attack on the formats: whatever comes in, what goes out is valid and within budget, or one clear line is raised.

`attack(fmt, number)` makes the body of that number, hands it in as users do, and judges what comes back; the same
number gives the same body everywhere. `shrunk` makes a finding small enough to read.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.attack.bodies import BODIES, Payload
from tests.attack.mutations import mutated
from tests.attack.providers import refusals

from everlong import EverlongError, fit
from everlong.compress import PRESET_NAMES
from everlong.wire import FORMATS, problems

__all__ = ["NAMES", "REFUSED", "VALID", "Finding", "Order", "attack", "body_of", "judge", "order_of", "shrunk"]

NAMES = tuple(BODIES)
BUDGETS = (None, 50_000, 50_000, 3_000, 900, 300, 90)
#: Presets change what they send; `off` sends what it was given.
PRESETS = ("auto",) * 5 + tuple(name for name in PRESET_NAMES if name != "off")

VALID, REFUSED = "valid", "refused"


@dataclass(frozen=True)
class Order:
    """How a body is handed in: the preset, the budget, and whether only its list of messages is."""

    preset: str
    budget: int | None
    bare: bool


@dataclass(frozen=True)
class Finding:
    """What should not have happened, and the body with which it did."""

    fmt: str
    number: int
    said: str
    order: Order
    body: Any

    def __str__(self) -> str:
        return f"{self.fmt} {self.number} {self.order}: {self.said}"


def body_of(fmt: str, number: int, *, python: bool = True) -> Payload:
    """The body of a number; the same everywhere."""
    dice = Random(f"{fmt}/{number}")
    return mutated(BODIES[fmt](dice), dice, python=python)


def order_of(fmt: str, number: int) -> Order:
    """How that body is handed in."""
    dice = Random(f"order/{fmt}/{number}")
    return Order(dice.choice(PRESETS), dice.choice(BUDGETS), dice.random() < 0.1)


def attack(fmt: str, number: int) -> str | Finding:
    """What became of one body: VALID, REFUSED, or a finding."""
    body, order = body_of(fmt, number), order_of(fmt, number)
    said = judge(fmt, body, order)
    return said if said in (VALID, REFUSED) else Finding(fmt, number, said, order, body)


def judge(fmt: str, body: Payload, order: Order) -> str:
    """VALID, REFUSED, or what is wrong."""
    try:
        fitted = fit(_given(fmt, body, order), preset=order.preset, budget=order.budget)
        sent, taken = fitted.body, fitted.document.fmt
        messages = fitted.messages
    except EverlongError as error:
        return _unclear(str(error)) or REFUSED
    except Exception as error:  # noqa: BLE001 - any other exception is what the attack looks for
        return f"raw {type(error).__name__}: {error}"[:200]
    if taken not in FORMATS:  # a session of another program: its records are written, not sent
        return VALID
    if order.budget is not None and fitted.tokens > order.budget:
        return f"{fitted.tokens} tokens, and the budget is {order.budget}"
    if not fitted.view.history:  # nothing in, nothing out
        return VALID
    whole = sent if isinstance(sent, dict) else {FORMATS[taken].api.messages: sent}
    return _refused(taken, whole) or _refused(taken, {**whole, FORMATS[taken].api.messages: messages}) or VALID


def _given(fmt: str, body: Payload, order: Order) -> Any:
    listed = body.get(FORMATS[fmt].api.messages)
    return listed if order.bare and isinstance(listed, list) else body


def _unclear(line: str) -> str:
    """Why an error is no single line that can be shown; "" if it is one."""
    if "\n" in line or len(line) > 400 or not line.strip():
        return f"an error that is no clear line: {line!r}"[:300]
    return "" if line.isprintable() or line.isascii() else f"an error that cannot be printed: {line!r}"[:300]


def _refused(fmt: str, body: Payload) -> str:
    theirs = refusals(fmt, body)
    if theirs:
        return f"invalid: {theirs[0]}"
    ours = problems(fmt, body)
    return f"only our own rules say: {ours[0]}" if ours else ""


# --- shrinking -----------------------------------------------------------------------------------


def shrunk(finding: Finding, *, most: int = 2_000, judge: Callable[[str, Any, Order], str] = judge) -> Finding:
    """The same finding with as little in its body as a few thousand attempts leave."""
    kind, body, attempts = _kind(finding.said), finding.body, 0
    smaller = True
    while smaller and attempts < most:
        smaller = False
        for candidate in _smaller(body):
            attempts += 1
            said = judge(finding.fmt, candidate, finding.order)
            if _kind(said) == kind:
                body, smaller, finding = (
                    candidate,
                    True,
                    Finding(finding.fmt, finding.number, said, finding.order, candidate),
                )
                break
            if attempts >= most:
                break
    return finding


def _kind(said: str) -> str:
    """A finding without its places and numbers."""
    return "".join(sign for sign in said.split("'")[0] if not sign.isdigit())


def _smaller(value: Any, depth: int = 0) -> Iterator[Any]:
    """The value without one of its members, or with one member made smaller or plain."""
    if depth > 40:
        return
    if isinstance(value, dict):
        for key in list(value):
            yield {name: inner for name, inner in value.items() if name != key}
        for key, inner in value.items():
            yield from ({**value, key: small} for small in _smaller(inner, depth + 1))
    elif isinstance(value, list):
        for at in range(len(value)):
            yield [*value[:at], *value[at + 1 :]]
        for at, inner in enumerate(value):
            yield from ([*value[:at], small, *value[at + 1 :]] for small in _smaller(inner, depth + 1))
    elif isinstance(value, str) and len(value) > 12:
        yield value[: len(value) // 2]
        yield value[len(value) // 2 :]
