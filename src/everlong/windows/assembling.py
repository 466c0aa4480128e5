"""Putting the tables together: limits that one leaves out filled in from the other, nothing twice.

The snapshot that comes with the package and a table that was fetched later are made in the same way. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from everlong.windows.entries import Entry, consistent
from everlong.windows.names import key_of
from everlong.windows.providers import REGIONAL, makers_of
from everlong.windows.registry import Registry

__all__ = ["LEAST_WINDOW", "assembled"]

LEAST_WINDOW = 1_024  # what is listed with less embeds or draws


def assembled(models_dev: Registry, litellm: Registry) -> Registry:
    """Both tables: limits that models.dev leaves to a base model filled in, nothing twice, nothing without a window."""
    filled = Registry(()).merged(Registry(tuple(_with_limits(models_dev, litellm)))).merged(litellm)
    kept = [entry for entry in filled if entry.window >= LEAST_WINDOW]
    return Registry(tuple(_without_regions(kept)))


def _with_limits(models_dev: Registry, litellm: Registry) -> Iterator[Entry]:
    """models.dev's rows; one without a window takes it from the same model elsewhere, and is marked so."""
    windows, prompts = _by_key(models_dev), _by_key(litellm)
    for entry in models_dev:
        key = key_of(entry.id)
        like = None if entry.window and entry.output else _same_model(key, windows.get(key, []), prompts.get(key, []))
        if like is None:
            yield entry
        elif entry.window:
            yield consistent(entry._replace(output=like.output))
        else:
            limits = entry._replace(context=like.window, input=like.input, output=entry.output or like.output)
            yield consistent(limits._replace(inferred=True))


def _same_model(key: str, windows: list[Entry], prompts: list[Entry]) -> Entry | None:
    """Whose limits to take: the maker's, else what most say.

    litellm knows the maker's prompt limit only; where somebody in models.dev has the same limit with the
    whole window beside it, that is the one meant.
    """
    makers = makers_of(key)
    for maker in makers:
        for entry in windows:
            if entry.provider == maker:
                return entry
    for maker in makers:
        for prompt in prompts:
            if prompt.provider == maker:
                return next((entry for entry in windows if entry.input == prompt.input), prompt)
    return _most_common(windows) or _most_common(prompts)


def _most_common(entries: list[Entry]) -> Entry | None:
    votes = Counter(entry.window for entry in entries)
    size = min(votes, key=lambda window: (-votes[window], window), default=None)
    return next((entry for entry in entries if entry.window == size), None)


def _by_key(registry: Registry) -> dict[str, list[Entry]]:
    keyed: dict[str, list[Entry]] = {}
    for entry in registry:
        if entry.window:
            keyed.setdefault(key_of(entry.id), []).append(entry)
    return keyed


def _without_regions(entries: Iterable[Entry]) -> Iterator[Entry]:
    """One row where a provider lists a model once for each region with the same limits: the shortest id."""
    seen = set()
    for entry in sorted(entries, key=lambda entry: (len(entry.id), entry.id)):
        same = (entry.table, entry.provider, key_of(entry.id), entry.window, entry.output)
        if entry.provider not in REGIONAL or same not in seen:
            seen.add(same)
            yield entry
