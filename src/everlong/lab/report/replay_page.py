"""What a replay found, as one page to send on: verdict, pictures, every conversation, and how to read it all.

Same results, same bytes. Results are taken as they are: nothing is played or priced here.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from html import escape

from everlong.errors import InputError
from everlong.lab.replay.results import Played, ReplayResult, Told
from everlong.lab.replay.sessions import Pauses
from everlong.lab.replay.tariffs import TARIFFS, Tariff, tariff_of
from everlong.lab.report.replay_figures import Scene, billed, scenes
from everlong.lab.report.replay_pictures import front_card, thresholds_card, turns_card
from everlong.lab.report.replay_verdict import percent, verdict
from everlong.lab.report.sheet import card, sheet, table
from everlong.lab.report.svg import tokens_short
from everlong.lab.report.wording import Wording, money, spaced

__all__ = ["replay_page"]

MOST_SESSIONS = 40  # rows; the rest stands together in one
LONGEST_ID = 20  # characters; the whole of it is said when it is pointed at
#: What no page may hold: control characters, halves of a pair, what is no character.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def replay_page(
    results: Sequence[ReplayResult],
    *,
    language: str = "en",
    facts: Sequence[str] = (),
    thresholds: Sequence[ReplayResult] = (),
    tariffs: Sequence[Tariff] = (),
    pauses: Pauses = "recorded",
) -> str:
    """The page. `facts` stand under the title; `thresholds` are ours at several thresholds.

    `tariffs` and `pauses` are what was played with, for the words on prices; a well-known tariff needs not be given.
    """
    say = Wording(language)
    found = scenes(results)
    sections = [verdict(scene, say, models=scene is found[0]) for scene in found]
    for scene in found:
        sections += [turns_card(scene, say), front_card(scene, say)]
    sections += [thresholds_card(thresholds, results, say), _sessions(found, say)]
    if found or thresholds:
        used = list(dict.fromkeys(one.tariff for one in (*results, *thresholds)))
        sections.append(_about(used, tariffs, pauses, say))
    else:
        sections.append(card(say("nothing"), ""))
    page = sheet(say("replay_title"), say("replay_intro"), [*facts, *_size(found, say)], filter(None, sections), say)
    return UNPRINTABLE.sub("\ufffd", page)


def _size(found: Sequence[Scene], say: Wording) -> Iterator[str]:
    """How much was replayed."""
    if found:
        sessions = found[0].sessions
        yield say("conversations", n=f"{len(sessions):,}")
        yield say("replay_tokens", tokens=tokens_short(sum(one.tokens for one in sessions)))


# --- every conversation --------------------------------------------------------------------------

SESSIONS = (
    "session",
    "source",
    "messages",
    "tokens",
    "requests",
    "recorded",
    "uncut",
    "ours",
    "saved",
    "kept",
    "cuts",
)


def _sessions(found: Sequence[Scene], say: Wording) -> str:
    parts = []
    for scene in found:
        if not scene.sessions:
            continue
        where = escape(f"{say('replay_window', n=f'{scene.window:,}')} · {say('replay_prices', name=scene.tariff)}")
        listed = _session_table(scene, say)
        if scene is found[0]:
            parts.append(f'<p class="rule">{where}</p>{listed}')
        else:
            parts.append(f"<details><summary>{where}</summary>{listed}</details>")
    return card(say("replay_sessions"), "".join(parts)) if parts else ""


def _session_table(scene: Scene, say: Wording) -> str:
    shown, rest = scene.sessions[:MOST_SESSIONS], scene.sessions[MOST_SESSIONS:]
    plain, ours = _by_session(scene.whole), _by_session(scene.ours)
    kept = any(billed([one]) for one in scene.sessions)
    columns = [name for name in SESSIONS if name != "recorded" or kept]
    rows = [(_row([one], _identity(one), columns, plain, ours), False) for one in shown]
    caption = ""
    if rest:
        name = escape(say("replay_rest", n=f"{len(rest):,}"))
        rows.append((_row(rest, (name, ""), columns, plain, ours), False))
        said = say("replay_sessions_caption", shown=f"{len(shown):,}", all=f"{len(scene.sessions):,}")
        caption = f'<p class="hint">{escape(said)}</p>'
    return table([say(f"replay_column_{name}") for name in columns], rows) + caption


def _by_session(result: ReplayResult | None) -> dict[Told, Played]:
    return {one.session: one for one in result.played} if result else {}


def _identity(session: Told) -> tuple[str, str]:
    """Its id, shortened in the middle, and where it is from, as cells."""
    name, source = session.id, escape(session.source)
    if len(name) <= LONGEST_ID:
        return f"<code>{escape(name)}</code>", source
    half = LONGEST_ID // 2
    return f'<code title="{escape(name)}">{escape(name[:half])}…{escape(name[-half:])}</code>', source


def _row(
    sessions: Sequence[Told],
    identity: tuple[str, str],
    columns: Sequence[str],
    plain: dict[Told, Played],
    ours: dict[Told, Played],
) -> list[str]:
    record = billed(sessions)
    uncut = [plain[one] for one in sessions if one in plain]
    mine = [ours[one] for one in sessions if one in ours]
    before, after = sum(one.dollars for one in uncut), sum(one.dollars for one in mine)
    probes = [probe for one in mine for probe in one.probes]
    saved = percent(1 - after / before) if before > 0 and mine else "–"
    cells = {
        "session": identity[0],
        "source": identity[1],
        "messages": spaced(f"{sum(one.messages for one in sessions):,}"),
        "tokens": tokens_short(sum(one.tokens for one in sessions)),
        "requests": spaced(f"{sum(len({paid.at for paid in one.paid}) for one in (uncut or mine)):,}"),
        "recorded": escape(money(record.dollars if record else None)),
        "uncut": escape(money(before if uncut else None)),
        "ours": f"<b>{escape(money(after if mine else None))}</b>",
        "saved": saved,
        "kept": f"{100 * sum(probe.kept for probe in probes) / len(probes):.0f}" if probes else "–",
        "cuts": spaced(f"{sum(paid.cut for one in mine for paid in one.paid):,}"),
    }
    return [cells[name] for name in columns]


# --- how to read it ------------------------------------------------------------------------------


def _about(used: Sequence[str], given: Sequence[Tariff], pauses: Pauses, say: Wording) -> str:
    rules = [say("replay_rule_request"), say("replay_rule_cache")]
    for name in used:
        tariff = _tariff(name, given)
        rules.append(_priced(tariff, say) if tariff else say("replay_prices", name=name))
    rules += [say(f"replay_pauses_{pauses}"), say("replay_rule_uncut"), say("replay_rule_probe")]
    rules += [say("replay_rule_reading"), say("replay_rule_refused")]
    return card(say("replay_about"), f'<ul class="rules">{"".join(f"<li>{escape(rule)}</li>" for rule in rules)}</ul>')


def _tariff(name: str, given: Sequence[Tariff]) -> Tariff | None:
    """The tariff of that name: one that is given, else a well-known one, else that of a model."""
    known = {**TARIFFS, **{tariff.name: tariff for tariff in given}}
    if name in known:
        return known[name]
    with suppress(InputError):
        return tariff_of(name)
    return None


PRICES = ("input", "cache_read", "cache_write", "output")


def _priced(tariff: Tariff, say: Wording) -> str:
    """What its tokens cost, and how long they are cached."""
    prices = [(name, getattr(tariff.prices, name)) for name in PRICES]
    listed = [say(f"replay_price_{name}", dollars=_price(price)) for name, price in prices if price is not None]
    said = say("replay_rule_prices", name=tariff.name, prices=("、" if say.language == "zh" else ", ").join(listed))
    if tariff.rules.kind == "none":
        return say.joined(said, say("replay_rule_none"))
    life = _time(tariff.rules.seconds, say)
    return say.joined(said, say(f"replay_rule_{tariff.rules.kind}", least=f"{tariff.rules.least:,}", time=life))


def _price(dollars: float) -> str:
    """A price as tables give it. Example: 3.0 -> $3, 0.125 -> $0.125"""
    return f"${dollars:g}"


def _time(seconds: float, say: Wording) -> str:
    for key, size in (("hours", 3_600), ("minutes", 60)):
        if seconds >= size and seconds % size == 0:
            return say(f"replay_{key}", n=f"{seconds / size:.0f}")
    return say("replay_seconds", n=f"{seconds:g}")
