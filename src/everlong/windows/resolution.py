"""Which window counts: the user's > learned from an overflow > asked for > served > the registry's > a default.

Every answer names its source, and what it was chosen over stays visible. Where a provider refused a request within
the user's figure, what that taught counts in its place. A place that no table knows does
not inherit the figure of a hosted model of the same name: it gets the default, or less if the model takes less.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from everlong.core import expect_text
from everlong.errors import InputError
from everlong.windows.entries import NO_PRICES, Entry, Prices, tokens
from everlong.windows.registry import Found, Registry
from everlong.windows.tables import bundled

__all__ = ["DEFAULT_WINDOW", "Source", "Window", "window"]

DEFAULT_WINDOW = 128_000  # tokens; most models of the last two years take at least this

Source: TypeAlias = Literal["user", "learned", "asked", "served", "registry", "default"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A model's window in tokens, and where the figure is from.

    `known` is False for the default: nobody said how large the window is. `input` is the largest prompt
    where the tables tell it apart from the whole; `output` the largest answer, None if unknown.
    """

    model: str
    context: int
    source: Source
    known: bool = True
    #: The entry that answered: its id ("" if none), provider, table and date.
    matched: str = ""
    provider: str = ""
    table: str = ""
    date: str = ""
    input: int | None = None
    output: int | None = None
    prices: Prices = NO_PRICES
    #: Other figures for the same model: who says so, and how many tokens.
    conflicts: tuple[tuple[str, int], ...] = ()

    @property
    def prompt(self) -> int:
        """The most that may be sent: the input limit where there is one, else the whole window."""
        return self.context if self.input is None else min(self.input, self.context)


def window(  # noqa: PLR0913 - the places a figure can come from are the point
    model: str,
    *,
    provider: str = "",
    override: int | None = None,
    learned: int | None = None,
    refuted: int | None = None,
    prompt: int | None = None,
    asked: int | None = None,
    served: int | None = None,
    default: int = DEFAULT_WINDOW,
    registry: Registry | None = None,
) -> Window:
    """Return the window of a model. An override always counts, also 0; other figures only if they are plausible.

    `provider` is where the model is used, if that is known: a name no table has is a server of one's own. `refuted` is
    a figure of the user's that the learned one lowers, `prompt` the largest prompt that refusals left, `asked` what
    the request itself asks for, such as a beta.
    Example: window("anthropic/claude-opus-4-5").context -> 200_000, source "registry"
    """
    expect_text("model", model, "a model's name")
    if override is not None and override < 0:
        raise InputError(f"the window of {model!r} cannot be {override}")
    found = (bundled() if registry is None else registry).lookup(model, provider)
    claims = _claims(found)
    stated: tuple[tuple[Source, int | None], ...] = (
        ("user", override),
        ("learned", tokens(learned)),
        ("asked", tokens(asked)),
        ("served", tokens(served)),
    )
    given = [(source, figure) for source, figure in stated if figure is not None]
    if len(given) > 1 and override is not None and override == refuted and given[1][0] == "learned":
        given[:2] = sorted(given[:2], key=lambda claim: claim[1])
    if given:
        source, context = given[0]
        return _with_prompt(_window(model, context, source, found, [*given[1:], *claims]), prompt)
    if found is None or not found.applies:
        context = default if found is None else min(default, found.entry.window)
        return Window(
            model=model, context=context, source="default", known=False, conflicts=_differing(context, claims)
        )
    return _window(model, found.entry.window, "registry", found, claims)


def _window(model: str, context: int, source: Source, found: Found | None, claims: list[tuple[str, int]]) -> Window:
    """The figure with what the tables say beside it: answer limit, prices and other claims."""
    conflicts = _differing(context, claims)
    if found is None or not found.applies:
        return Window(model=model, context=context, source=source, conflicts=conflicts)
    entry = found.entry
    own = [entry, *(other for other in found.others if other.provider == entry.provider)]
    if source == "registry" and entry.input is not None and entry.input < context:
        conflicts = tuple(claim for claim in conflicts if claim[1] != entry.input)
        limit: int | None = entry.input
    else:
        limit = None
    return Window(
        model=model,
        context=context,
        source=source,
        matched=entry.id,
        provider=entry.provider,
        table=entry.origin,
        date=entry.date if source == "registry" else "",
        input=limit,
        output=next((other.output for other in own if other.output), None),
        prices=next((other.prices for other in own if other.prices != NO_PRICES), NO_PRICES),
        conflicts=conflicts,
    )


def _with_prompt(known: Window, prompt: int | None) -> Window:
    return known if prompt is None or prompt >= known.prompt else replace(known, input=prompt)


def _claims(found: Found | None) -> list[tuple[str, int]]:
    """Return the claims of all sources, the one that answered and its provider first."""
    if found is None:
        return []
    entries: Iterable[Entry] = sorted(found.others, key=lambda entry: entry.provider != found.entry.provider)
    return [(entry.claimant, entry.window) for entry in (found.entry, *entries)]


def _differing(context: int, claims: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    return tuple(dict.fromkeys(claim for claim in claims if claim[1] != context))
