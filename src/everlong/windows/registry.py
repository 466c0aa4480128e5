"""The registry of models: all rows of the tables, and the choice of the row for a model name.

Order: the exact name, the same name with other release marks, the longest prefix that ends at a word boundary. The
named provider comes first; a bare name means the maker's own service; if neither has the model, the window that most
providers list wins.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from everlong.core import misspelt, nearest
from everlong.windows.entries import MODELS_DEV, Entry, consistent
from everlong.windows.names import Spelling, key_of, prefixes, spelling_of, tails, unmarked
from everlong.windows.providers import SELF_HOSTED, canonical, makers_of

__all__ = ["Found", "Registry"]

SURE = 0.75  # similarity (0 to 1): among thousands of names, some are always a little similar
REMEMBERED = 1_024  # lookups in the cache; bounded, because names come from clients


@dataclass(frozen=True, slots=True)
class Found:
    """The entry chosen for a name, and the other entries of the same model.

    `applies` is False if the name is known but the server is not: your own server may have a smaller window.
    """

    entry: Entry
    others: tuple[Entry, ...]
    applies: bool = True


@dataclass(frozen=True)
class Registry:
    """A registry of models from any number of tables. It is indexed at the first lookup."""

    entries: tuple[Entry, ...]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def snapshots(self) -> tuple[tuple[str, str], ...]:
        """Each table and its date."""
        return tuple(sorted({(entry.table, entry.date) for entry in self.entries}))

    def lookup(self, model: str, provider: str = "") -> Found | None:
        """Return the entry of a model, or None. A provider may be given or precede the model's name.

        Example: "openrouter/deepseek/deepseek-chat" -> openrouter's entry; "deepseek-chat" -> deepseek's
        """
        return self._remembered(model, provider)

    def find(self, text: str) -> list[Entry]:
        """Return the entries whose provider or name contains every word of `text`, makers' own first; "" finds all."""
        words = text.lower().split()
        found = [
            entry for entry in self.entries if all(word in f"{entry.provider}/{entry.id}".lower() for word in words)
        ]
        return sorted(found, key=lambda entry: (not _is_makers(entry), entry.provider, entry.id.lower(), entry.table))

    def meant(self, model: str) -> str:
        """Return the known name that was probably meant; "" if none is similar.

        The makers' own names come first. Example: "openai/gpt4o" -> "gpt-4o"
        """
        own = (entry.id for entry in self.find(""))
        return nearest(model.rpartition("/")[2], (name.rpartition("/")[2] for name in own), near=SURE)

    def misspelt(self, model: str) -> str:
        """Return the known name that an unknown one almost is; "" if the name is known or means something else.

        A name of your own server, with a tag or of a file is never taken for a misspelt one. Example: "gpt-4oo" ->
        "gpt-4o"; "ollama/gpt-4oo", "gpt-4oo:7b", "gpt-4o" -> ""
        """
        asked = spelling_of(model)
        plain = unmarked(asked.key)
        if {asked.key, plain} & (self._named.keys() | self._released.keys()) or ":" in plain:
            return ""
        if asked.provider in SELF_HOSTED or asked.is_own_file:
            return ""
        return misspelt(plain, self._tails)

    def merged(self, other: "Registry") -> "Registry":
        """Return both registries as one. Of two rows with the same table, provider and model, newer figures count."""
        rows = {_identity(entry): entry for entry in self.entries}
        for entry in other.entries:
            known = rows.get(_identity(entry))
            rows[_identity(entry)] = entry if known is None else _newest(known, entry)
        return Registry(tuple(rows.values()))

    # --- the index -----------------------------------------------------------------------------

    @cached_property
    def _remembered(self) -> Callable[[str, str], Found | None]:
        """`lookup` with a cache: a conversation looks up the same model in every turn."""
        return lru_cache(maxsize=REMEMBERED)(self._look_up)

    @cached_property
    def _named(self) -> Mapping[str, list[Entry]]:
        """Entries that have a window, by key."""
        return _grouped((key_of(entry.id), entry) for entry in self.entries if entry.window)

    @cached_property
    def _released(self) -> Mapping[str, list[Entry]]:
        """Entries whose names have release marks, by the key without them."""
        plain = ((key, unmarked(key)) for key in self._named)
        return _grouped((name, entry) for key, name in plain if name != key for entry in self._named[key])

    @cached_property
    def _tails(self) -> tuple[str, ...]:
        """The names without what precedes them, each once; the makers' own come first."""
        return tuple(dict.fromkeys(entry.id.rpartition("/")[2] for entry in self.find("") if entry.window))

    @cached_property
    def _providers(self) -> frozenset[str]:
        return frozenset(entry.provider for entry in self.entries)

    @cached_property
    def _organisations(self) -> frozenset[str]:
        """The path segments before names: publishers, regions, folders."""
        paths = (entry.id.lower().split("/")[:-1] for entry in self.entries if "/" in entry.id)
        return frozenset(segment for path in paths for segment in path)

    # --- the steps of a lookup -----------------------------------------------------------------

    def _look_up(self, model: str, provider: str) -> Found | None:
        asked = spelling_of(model, provider)
        exact = (asked.key, unmarked(asked.key))
        listed = asked.provider in self._providers
        home = (asked.provider,) if listed else makers_of(asked.key)
        if self._is_open(asked, provider):
            entry = self._pick(asked, exact, home) or self._pick(asked, exact) or self._by_prefix(asked, home)
            return self._found(asked, entry or self._deployment(asked))
        if listed:
            entry = self._pick(asked, exact, home) or self._pick(asked, prefixes(asked.key), home)
            if entry is not None:
                return self._found(asked, entry)
        return self._found(asked, self._pick(asked, exact) or self._by_prefix(asked, ()), applies=False)

    def _is_open(self, asked: Spelling, provider: str) -> bool:
        """Whether entries of other providers may be used: not for your own server or a provider that no table has."""
        if provider:
            return asked.provider in self._providers and asked.provider not in SELF_HOSTED
        if asked.provider in SELF_HOSTED or asked.is_own_file:
            return False
        if not asked.path or asked.path[-1] == "models":
            return True
        known = self._providers | self._organisations
        return all(part in known or canonical(part) in known for part in asked.path)

    def _pick(self, asked: Spelling, keys: Iterable[str], providers: Sequence[str] = ()) -> Entry | None:
        """Return the best entry of the first key that has entries, of these providers only if some are given."""
        for key in keys:
            entries = [*self._named.get(key, ()), *self._released.get(key, ())]
            if providers:
                entries = [entry for entry in entries if entry.provider in providers]
            if entries:
                return _best(entries, asked, key)
        return None

    def _by_prefix(self, asked: Spelling, home: Sequence[str]) -> Entry | None:
        """Return the entry of the longest prefix that is a name. At each length, the providers in `home` come first."""
        for key in prefixes(asked.key):
            entry = (self._pick(asked, (key,), home) if home else None) or self._pick(asked, (key,))
            if entry is not None:
                return entry
        return None

    def _deployment(self, asked: Spelling) -> Entry | None:
        """Find the model in the name of an Azure deployment. Example: "prod-gpt-4o-eu" -> gpt-4o."""
        if asked.provider != "azure":
            return None
        candidates = (key for tail in tails(asked.key) for key in (tail, *prefixes(tail)))
        return self._pick(asked, candidates, ("azure",))

    def _found(self, asked: Spelling, entry: Entry | None, *, applies: bool = True) -> Found | None:
        """Return the entry with the others of its name: only its provider's if that was named, otherwise all."""
        if entry is None:
            return None
        others = [other for other in self._named[key_of(entry.id)] if other is not entry]
        if entry.provider == asked.provider:
            others = [other for other in others if other.provider == asked.provider]
        return Found(entry, tuple(others), applies)


def _best(entries: Iterable[Entry], asked: Spelling, key: str) -> Entry:
    """Return the best entry: the maker's or the named provider's, otherwise one with the commonest window."""
    makers = makers_of(key)

    def rank(entry: Entry) -> tuple[int, bool, bool, bool, bool]:
        return (
            makers.index(entry.provider) if entry.provider in makers else len(makers),
            not asked.text.endswith(entry.id.lower()),
            key_of(entry.id) != key,
            entry.table != MODELS_DEV,
            entry.inferred,
        )

    newest_first = sorted(entries, key=lambda entry: entry.id.lower(), reverse=True)
    candidates = sorted(newest_first, key=rank)
    if candidates[0].provider in makers or candidates[0].provider == asked.provider:
        return candidates[0]
    hosted = [entry for entry in candidates if entry.provider not in SELF_HOSTED] or candidates
    votes = Counter(entry.window for entry in hosted)
    window = min(votes, key=lambda size: (-votes[size], size))
    return next(entry for entry in hosted if entry.window == window)


def _grouped(pairs: Iterable[tuple[str, Entry]]) -> dict[str, list[Entry]]:
    groups: dict[str, list[Entry]] = {}
    for key, entry in pairs:
        groups.setdefault(key, []).append(entry)
    return groups


def _is_makers(entry: Entry) -> bool:
    return entry.provider in makers_of(key_of(entry.id))


def _identity(entry: Entry) -> tuple[str, str, str]:
    return entry.table, entry.provider, entry.id.lower()


def _newest(known: Entry, other: Entry) -> Entry:
    """Return the newer row, with missing figures filled in from the older one."""
    newer, older = (other, known) if other.date >= known.date else (known, other)
    figures = {name: getattr(older, name) for name in Entry._fields[4:11] if getattr(newer, name) is None}
    return consistent(newer._replace(**figures, inferred=newer.inferred if newer.window else older.inferred))
