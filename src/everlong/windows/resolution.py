"""Choose a model's context window: user > learned from an overflow > asked for > served > registry > default.

Every result names its source and keeps the figures that lost. If a provider refused a request that was within the
user's figure, the learned figure replaces it. A server that no table knows does not inherit the window of a hosted
model with the same name: it gets the default, or less if the model accepts less.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
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
    """A model's context window in tokens, and where the figure comes from.

    - `context`: the whole window.
    - `source`: "user", "learned", "asked", "served", "registry" or "default".
    - `known`: False for the default, which is a guess.
    - `input`: the largest prompt, if it is limited separately; None if not.
    - `output`: the largest reply; None if unknown.
    - `prices`: prices in USD per million tokens, if the tables have them.
    - `conflicts`: other figures for the same model, each with its source.
    """

    model: str
    context: int
    source: Source
    known: bool = True
    #: The matched entry: its id ("" if none), provider, table and date.
    matched: str = ""
    provider: str = ""
    table: str = ""
    date: str = ""
    input: int | None = None
    output: int | None = None
    prices: Prices = NO_PRICES
    #: Other figures for the same model: the source, and the number of tokens.
    conflicts: tuple[tuple[str, int], ...] = field(default=(), repr=False)

    @property
    def prompt(self) -> int:
        """The largest prompt in tokens: the input limit if there is one, otherwise the whole window."""
        return self.context if self.input is None else min(self.input, self.context)


def window(  # noqa: PLR0913 - one parameter per source of the figure
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
    """Return the context window of a model.

    - `model`: the model's name, with or without its provider: "claude-opus-4-5", "anthropic/claude-opus-4-5".
    - `provider`: where the model is used. A name that no table has means your own server.
    - `override`: your own figure. It always counts, even 0. The figures below count only if they are plausible.
    - `learned`: the window learned from a refusal. It replaces `override` only if the refusal disproved it (`refuted`).
    - `prompt`: the largest prompt learned from refusals. It applies wherever the window comes from.
    - `asked`: the window that the request itself asks for, for example with a beta header.
    - `served`: the window that the server reports.
    - `default`: the figure to use if no source has one.

    Example: window("anthropic/claude-opus-4-5").context -> 200_000, source "registry"
    """
    expect_text("model", model, "a model's name")
    if override is not None and override < 0:
        raise InputError(f"override must be 0 or more tokens, not {override}")
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
        assumed = Window(
            model=model, context=context, source="default", known=False, conflicts=_differing(context, claims)
        )
        return _with_prompt(assumed, prompt)
    return _with_prompt(_window(model, found.entry.window, "registry", found, claims), prompt)


def _window(model: str, context: int, source: Source, found: Found | None, claims: list[tuple[str, int]]) -> Window:
    """Return the window with what the tables add: output limit, prices and other claims."""
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
    """Return the claims of all entries: the matched one first, then those of its provider."""
    if found is None:
        return []
    entries: Iterable[Entry] = sorted(found.others, key=lambda entry: entry.provider != found.entry.provider)
    return [(entry.claimant, entry.window) for entry in (found.entry, *entries)]


def _differing(context: int, claims: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    return tuple(dict.fromkeys(claim for claim in claims if claim[1] != context))
