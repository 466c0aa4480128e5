"""The words of the lab's pages in one language, with values inserted. The texts are in `words/`."""

from dataclasses import dataclass

from everlong.lab.report.words import TABLES

__all__ = ["LANGUAGES", "Wording"]

LANGUAGES = tuple(TABLES)


@dataclass(frozen=True, slots=True)
class Wording:
    """The texts of one language. Example: Wording("en")("failed", n="2") -> "failed 2" """

    language: str

    def __call__(self, key: str, **values: str) -> str:
        """Return a text with its values inserted. Of two forms, "one|several", the first is used if `n` is 1."""
        one, _, several = TABLES[self.language][key].rpartition("|")
        text = one if one and values.get("n") == "1" else several
        return text.format(**values)

    def known(self, key: str, otherwise: str) -> str:
        """Return the text of a key, or `otherwise` if there is none: anyone may name a measure or a group."""
        return self(key) if self.has(key) else otherwise

    def has(self, key: str) -> bool:
        """Return whether there is a text of that key."""
        return key in TABLES[self.language]

    def joined(self, *sentences: str) -> str:
        """Return the sentences as one text, without the empty ones."""
        return self("between_sentences").join(filter(None, sentences))

    def listed(self, *items: str) -> str:
        """Return the items as a list in a sentence."""
        return self("between_items").join(items)
