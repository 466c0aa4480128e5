"""The table of languages, how one is chosen, and the texts of a command in it."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import click

from everlong.cli.terminal.tables import amount, percent
from everlong.cli.terminal.text import one_line
from everlong.cli.words.chinese import CHINESE
from everlong.cli.words.english import ENGLISH
from everlong.cli.words.language import Language, Section

__all__ = ["LANGUAGES", "Words", "language_from", "language_of", "language_option"]

#: The first is for people whose locale names none of them.
LANGUAGES: tuple[Language, ...] = (ENGLISH, CHINESE)

BY_RULES = "by rules: "  # how the engine marks the reason of a summary that no model wrote


@dataclass(frozen=True, slots=True)
class Words:
    """The texts of one command in one language. Example: Words(ENGLISH, "inspect").many("rounds", 1) -> "1 round" """

    language: Language
    section: Section

    def __call__(self, key: str, **values: str) -> str:
        """Return a text with its values filled in."""
        return self._text(key).rpartition("|")[2].format(**values)

    def many(self, key: str, number: int, **values: str) -> str:
        """Return a text in the form that fits the number, which is `{n}` in it."""
        one, _, several = self._text(key).rpartition("|")
        return (one if one and number == 1 else several).format(n=amount(number), **values)

    def share(self, low: int, high: int, whole: int) -> str:
        """Return the share of a whole; a range where the figure is only estimated."""
        if low == high:
            return percent(low, whole)
        return self("range", low=percent(low, whole), high=percent(high, whole))

    def report_picked(self, number: int, of: int) -> None:
        """Say on standard error which conversation of a file this is, if there are several."""
        if of > 1:
            click.echo(self("several", n=amount(of), at=str(number)), err=True)

    def report_model(self, model: str) -> None:
        """Say on standard error, in one line, that a model is unknown if its name is almost that of a known one."""
        if not model:
            return
        from everlong.windows import bundled  # noqa: PLC0415 - not for commands without a model

        meant = bundled().misspelt(model)
        if meant:
            click.echo(f"everlong: {self('model_meant', name=repr(one_line(model)), meant=meant)}", err=True)

    def report_skipped(self, warnings: Sequence[str]) -> None:
        """Say on standard error what could not be read, so that the output stays clean."""
        for warning in warnings:
            click.echo(self("skipped", what=self.reason(warning)), err=True)

    def name(self, key: str) -> str:
        """Return the word for a role, a kind of content or a protection; any other name stays as it is."""
        return self.language.names.get(key, key)

    def step(self, step: str, action: str) -> str:
        """Return what a compression step is about, or what it adds."""
        texts = self.language.texts[self.section]
        return texts.get(f"{action}_{step}") or texts.get(f"step_{step}", step)

    def reason(self, text: str) -> str:
        """Return a sentence of another layer in this language; in English where no translation is known.

        Example, in Chinese: "call c1 has no result after it" -> "调用 c1 之后没有结果"
        """
        sentence = text.removeprefix(BY_RULES)
        for pattern, translation in _translations(self.language):
            match = pattern.fullmatch(sentence)
            if match:
                return translation.format(**match.groupdict())
        return sentence

    def _text(self, key: str) -> str:
        texts = self.language.texts
        tables = (texts[self.section], texts["general"], self.language.names)
        return next(table[key] for table in tables if key in table)


@cache
def _translations(language: Language) -> list[tuple[re.Pattern[str], str]]:
    """Return the translations as patterns, the most precise first: those with the most text beside their gaps."""
    rows = sorted(language.reasons, key=lambda row: 3 * row[0].count("{") - len(row[0]))
    return [(_pattern(english), translation) for english, translation in rows]


def _pattern(english: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{(\w)\\\}", r"(?P<\1>.+)", re.escape(english)), re.DOTALL)


def language_from(environment: Mapping[str, str]) -> Language:
    """Return the language of the locale. Example: {"LANG": "zh_CN.UTF-8"} -> Chinese"""
    locale = next(filter(None, (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))), "")
    named = (one for one in LANGUAGES if re.match(rf"{one.code}([_.-]|$)", locale, re.IGNORECASE))
    return next(named, LANGUAGES[0])


def language_of(ctx: click.Context) -> Language:
    """Return the language that `everlong --lang` named before the command, else that of the locale."""
    named = ctx.meta.get(Language.__name__)
    return named if isinstance(named, Language) else language_from(os.environ)


def _chosen(ctx: click.Context, _: click.Parameter, code: str | None) -> Language:
    named = (language for language in LANGUAGES if language.code == code)
    language = next(named, None) or language_of(ctx)
    if isinstance(ctx.obj, dict):
        ctx.obj[Language.__name__] = language  # for an error that ends the command
    return language


#: The option `--lang`; the command gets a `Language`.
language_option = click.option(
    "--lang",
    "language",
    type=click.Choice([language.code for language in LANGUAGES]),
    callback=_chosen,
    help="Language of the output (default: your locale's).",
)
