"""Every policy of a replay by its name: everlong's presets, policies to compare with, and any strategy of the lab.

whole               nothing is cut
auto, auto-trim     everlong's engine, and without summaries; auto-model: a model writes them in work with tools, too;
                    auto@0.8 at another threshold; any other preset; everlong is auto
slide               the newest steps that fit, chosen again for every request
clear@.5            all tool results but the newest three cleared, again for every request, from that share on
drop@.95/.3         whole steps dropped in batches, from one share of the budget down to another
trim@.85/.5         old tool results cut to their ends in batches, then steps dropped; trim-each@.85/.5 as soon as old
summary@.95         a summary of everything and the newest 10k; summary@60000 at that many tokens;
                    summary-capped@.95 with results capped at 2k
cold@.95/.3/.5      as drop, and down to the second share from the last share on when the cache is cold
newest, …           any strategy of the lab, peers and module:function too: selected again for every request
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from everlong.compress import PRESETS
from everlong.core import did_you_mean
from everlong.engine import DEFAULT_SETTINGS, HIGHEST_THRESHOLD, LOWEST_THRESHOLD, Summarizing
from everlong.errors import InputError
from everlong.lab.replay.baselines import (
    ClearResults,
    DropRounds,
    KeepWhole,
    Marks,
    SelectEachTurn,
    Summarise,
    TrimResults,
)
from everlong.lab.replay.courses import Course, Policy, Terms
from everlong.lab.replay.ours import Ours
from everlong.lab.strategies.table import OURS, strategy_named, strategy_names

__all__ = ["COMPARED", "UNCUT", "policy_named", "policy_names"]

UNCUT = "whole"

#: The policies that are compared by default.
COMPARED = (
    "whole",
    "auto",
    "auto-trim",
    "drop@.95/.3",
    "drop@.95/.5",
    "trim@.85/.5",
    "summary@.95",
    "slide",
    "clear@.5",
)
#: Suffixes of a preset's name: who writes summaries, None for nobody.
WRITERS: dict[str, Summarizing | None] = {"-trim": None, "-model": "on", "": "auto"}
CAP = 2_000  # tokens of a result, if it is capped on arrival
LEAST = 1_000  # tokens of a threshold; less does not hold one question with its answer


def policy_named(name: str) -> Policy:
    """Return the policy with that name; its own name may differ. Example: everlong@.8 -> auto@.8

    Raises InputError that lists the existing policies, also for figures after @ that it cannot use.
    """
    kind, at, text = name.partition("@")
    writer = next(ending for ending in WRITERS if kind.endswith(ending))
    if kind.removesuffix(writer) == OURS:
        kind = DEFAULT_SETTINGS.rules.name + kind.removeprefix(OURS)
        name = f"{kind}{at}{text}"
    figures = _figures(text) if at else None
    preset = kind.removesuffix(writer)
    if preset in PRESETS:
        _check(name, figures, _THRESHOLD)
        threshold = figures[0] if figures else None
        return Policy(name, partial(Ours, preset=preset, threshold=threshold, summaries=WRITERS[writer]))
    if kind in _KINDS:
        known = _KINDS[kind]
        _check(name, figures, known)
        return Policy(name, partial(known.begin, figures or known.usual))
    names = policy_names()
    if name not in names and ":" not in name:
        listed = f"use {', '.join(names)}, or module:function for your own"
        raise InputError(f"unknown policy {name!r}; {listed}{did_you_mean(name, names)}")
    strategy = strategy_named(name)
    return Policy(name, lambda terms: SelectEachTurn(terms, strategy=strategy))


def policy_names() -> tuple[str, ...]:
    """Return the names that `policy_named` knows, without figures after @."""
    return (*_KINDS, *(each for each in strategy_names() if each not in _KINDS))


# --- the kinds of policies, and what may stand behind @ ------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of policy. `wanted` says what follows @, `fits` checks it; `usual` is the default."""

    wanted: str
    fits: Callable[[Sequence[float]], bool]
    usual: tuple[float, ...] = ()
    begin: Callable[[Sequence[float], Terms], Course] = lambda _, terms: KeepWhole(terms)


def _slide(_: Sequence[float], terms: Terms) -> Course:
    return DropRounds(terms, marks=Marks(1.0, 1.0))


def _clear(shares: Sequence[float], terms: Terms) -> Course:
    return ClearResults(terms, high=shares[0])


def _drop(shares: Sequence[float], terms: Terms) -> Course:
    return DropRounds(terms, marks=Marks(*shares))


def _trim(shares: Sequence[float], terms: Terms) -> Course:
    return TrimResults(terms, marks=Marks(*shares))


def _trim_each(shares: Sequence[float], terms: Terms) -> Course:
    return TrimResults(terms, marks=Marks(*shares), each_turn=True)


def _summary(figures: Sequence[float], terms: Terms, cap: int = 0) -> Course:
    (high,) = figures
    return Summarise(terms, high=high, cap=cap) if high <= 1 else Summarise(terms, limit=int(high), cap=cap)


def _high_and_low(shares: Sequence[float]) -> bool:
    return len(shares) == 2 and 0 < shares[1] < shares[0] <= 1


def _high_low_and_cold(shares: Sequence[float]) -> bool:
    return len(shares) == 3 and 0 < shares[1] < shares[2] <= shares[0] <= 1


def _share_or_tokens(figures: Sequence[float]) -> bool:
    return len(figures) == 1 and (0 < figures[0] <= 1 or (figures[0] >= LEAST and figures[0].is_integer()))


_PAIR = "@ needs two shares of the budget, the higher first, such as .95/.3"
_ONE = f"@ needs a share of the budget such as .95, or at least {LEAST} tokens"
_THRESHOLD = _Kind(
    f"@ needs the threshold, a share from {LOWEST_THRESHOLD:.2f} to {HIGHEST_THRESHOLD:.2f}",
    lambda shares: len(shares) == 1 and LOWEST_THRESHOLD <= shares[0] <= HIGHEST_THRESHOLD,
)
_KINDS = {
    UNCUT: _Kind("it takes no @", lambda _: False),
    "slide": _Kind("it takes no @", lambda _: False, (), _slide),
    "clear": _Kind("@ needs a share of the budget such as .5", lambda s: len(s) == 1 and 0 < s[0] <= 1, (0.5,), _clear),
    "drop": _Kind(_PAIR, _high_and_low, (0.95, 0.5), _drop),
    "cold": _Kind(
        "@ needs three shares of the budget: threshold, target, and the one for a cold cache, "
        "between them, such as .95/.3/.5",
        _high_low_and_cold,
        (0.95, 0.3, 0.5),
        _drop,
    ),
    "trim": _Kind(_PAIR, _high_and_low, (0.85, 0.5), _trim),
    "trim-each": _Kind(_PAIR, _high_and_low, (0.85, 0.5), _trim_each),
    "summary": _Kind(_ONE, _share_or_tokens, (0.95,), _summary),
    "summary-capped": _Kind(_ONE, _share_or_tokens, (0.95,), partial(_summary, cap=CAP)),
}


def _check(name: str, figures: Sequence[float] | None, kind: _Kind) -> None:
    if figures is not None and not kind.fits(figures):
        raise InputError(f"{name}: {kind.wanted}")


def _figures(text: str) -> tuple[float, ...]:
    """Return the figures after @; () if they are not figures, which no policy accepts.

    Example: ".95/.3" -> (0.95, 0.3)
    """
    try:
        return tuple(float(piece) for piece in text.split("/"))
    except ValueError:
        return ()
