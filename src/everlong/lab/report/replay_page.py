"""The page of a replay: the verdict of each window, pictures, every conversation, and how to read it all.

The same results give the same bytes. Nothing is played or priced here.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from html import escape

from everlong.errors import InputError
from everlong.lab.replay.results import Played, ReplayResult, SessionFacts
from everlong.lab.replay.sessions import Pauses
from everlong.lab.replay.tariffs import TARIFFS, Tariff, tariff_of
from everlong.lab.report.numbers import grouped, money, percent, tokens_short
from everlong.lab.report.replay_figures import Billed, Scene, billed, scenes
from everlong.lab.report.replay_pictures import front_card, thresholds_card, turns_card
from everlong.lab.report.sheet import card, sheet, table
from everlong.lab.report.wording import Wording

__all__ = ["replay_page"]

SAME = 0.005  # of the uncut cost; a smaller difference is not mentioned
MOST_SESSIONS = 40  # rows; one more row sums up the rest
LONGEST_ID = 20  # characters; a longer one is shortened, with the whole id as its title
#: What a page may not contain: control characters, lone surrogates, code points that are not characters.
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
    """Return the page. `facts` are shown below the title; `thresholds` are the results of auto at several thresholds.

    `tariffs` and `pauses` are those of the replay, for the text on prices. A well-known tariff need not be given.
    """
    say = Wording(language)
    found_scenes = scenes(results)
    sections = [_verdict(scene, say, models=scene is found_scenes[0]) for scene in found_scenes]
    for scene in found_scenes:
        sections += [turns_card(scene, say), front_card(scene, say)]
    sections += [thresholds_card(thresholds, results, say), _sessions(found_scenes, say)]
    if found_scenes or thresholds:
        used = list(dict.fromkeys(result.tariff for result in (*results, *thresholds)))
        sections.append(_about(used, tariffs, pauses, say))
    else:
        sections.append(card(say("nothing"), ""))
    page = sheet(
        say("replay_title"), say("replay_intro"), [*facts, *_size(found_scenes, say)], filter(None, sections), say
    )
    return UNPRINTABLE.sub("\ufffd", page)


def _size(found_scenes: Sequence[Scene], say: Wording) -> Iterator[str]:
    """Yield how much was replayed."""
    if found_scenes:
        sessions = found_scenes[0].sessions
        yield say("conversations", n=f"{len(sessions):,}")
        yield say("replay_tokens", tokens=tokens_short(sum(session.tokens for session in sessions)))


# --- the verdict ---------------------------------------------------------------------------------


def _verdict(scene: Scene, say: Wording, *, models: bool) -> str:
    """Return the card of one window: a sentence, large figures, notes; with `models`, the real costs by model."""
    record = billed(scene.sessions)
    facts = (
        say("replay_overhead", n=f"{scene.front:,}"),
        say("replay_prices", name=scene.tariff),
        say("conversations", n=f"{len(scene.sessions):,}"),
    )
    lead = say.joined(*_sentences(scene, say))
    sums = "".join(_sums(scene, record, say))
    figures = "".join(_facts(scene.ours, say)) if scene.ours else ""
    notes = "".join(f"<li>{escape(note)}</li>" for note in _notes(scene, record, say))
    tiles = f'<div class="tiles">{sums}</div><div class="tiles">{figures}</div>'
    body = f'<p class="lead">{escape(lead)}</p>{tiles}<ul class="notes">{notes}</ul>'
    title = say("replay_window", n=f"{scene.window:,}")
    return card(title, body + (_by_model(record, say) if record and models else ""), facts)


def _sentences(scene: Scene, say: Wording) -> Iterator[str]:
    ours = scene.ours
    if ours is None:
        yield say("replay_no_ours")
        return
    change = ours.ratio - 1
    key = "replay_same" if abs(change) < SAME else "replay_less" if change < 0 else "replay_more"
    values = {"ours": money(ours.dollars)}
    if key != "replay_same":
        values |= {"uncut": money(ours.uncut), "share": percent(abs(change), 0)}
    yield say(key, **values)
    if ours.probes:
        kept, literal = percent(ours.kept_percent / 100), percent(ours.literal_percent / 100)
        yield say("replay_stays", n=f"{ours.probes:,}", kept=kept, literal=literal)
    else:
        yield say("replay_unprobed")


def _tile(name: str, value: str, under: str, kind: str = "") -> str:
    words = f"<span>{escape(name)}</span><b>{escape(value)}</b><small>{escape(under)}</small>"
    return f'<div class="tile {kind}">{words}</div>'


def _sums(scene: Scene, record: Billed | None, say: Wording) -> Iterator[str]:
    if record:
        under = say("replay_tile_recorded_under", n=f"{record.requests:,}", tokens=tokens_short(record.tokens))
        yield _tile(say("replay_tile_recorded"), money(record.dollars), under, "sum")
    plain = scene.whole or scene.ours
    if plain:
        under = "under" if scene.whole is None else "over" if scene.longest > scene.window else "fits"
        yield _tile(say("replay_tile_uncut"), money(plain.uncut), say(f"replay_tile_uncut_{under}"), "sum")
    if scene.ours:
        under = say("replay_tile_ours_under", share=percent(scene.ours.ratio))
        yield _tile(say("replay_tile_ours"), money(scene.ours.dollars), under, "sum ours")


def _facts(ours: ReplayResult, say: Wording) -> Iterator[str]:
    if ours.probes:
        under = say("replay_tile_kept_under", literal=percent(ours.literal_percent / 100))
        yield _tile(say("replay_tile_kept"), percent(ours.kept_percent / 100), under)
    if not ours.cuts:
        under = say("replay_tile_no_cuts")
    elif ours.resets == ours.cuts:
        under = say("replay_tile_one_reset")
    else:
        under = say("replay_tile_resets", n=f"{ours.resets:,}")
    yield _tile(say("replay_tile_cuts"), grouped(ours.cuts), under, "bad" if ours.resets > ours.cuts else "")
    for name, count, dollars in (
        ("summaries", ours.summaries, ours.summary_dollars),
        ("readings", ours.readings, ours.reading_dollars),
    ):
        share = percent(dollars / ours.dollars if ours.dollars else 0.0)
        yield _tile(say(f"replay_tile_{name}"), grouped(count), say("replay_tile_share", share=share))
    refused = ours.over + ours.invalid
    under = say("replay_tile_none_refused")
    if refused:
        under = say("replay_tile_some_refused", over=f"{ours.over:,}", invalid=f"{ours.invalid:,}")
    yield _tile(say("replay_tile_refused"), grouped(refused), under, "bad" if refused else "")


def _notes(scene: Scene, record: Billed | None, say: Wording) -> Iterator[str]:
    whole, ours = scene.whole, scene.ours
    if whole and scene.longest:
        longest = f"{scene.longest:,}"
        if scene.longest > scene.window:
            all_requests = f"{whole.requests:,}"
            yield say("replay_note_impossible", longest=longest, n=f"{whole.over:,}", all=all_requests)
        else:
            yield say("replay_note_fit", longest=longest)
    if ours:
        yield from _notes_on_ours(ours, len(scene.sessions), say)
    if record:
        yield from _notes_on_record(record, len(scene.sessions), say)


def _notes_on_ours(ours: ReplayResult, sessions: int, say: Wording) -> Iterator[str]:
    if ours.over + ours.invalid:
        yield say("replay_note_refused", n=f"{ours.over + ours.invalid:,}")
    yield say("replay_note_broken", n=f"{ours.broken:,}") if ours.broken else say("replay_note_steady")
    if ours.storms:
        yield say("replay_note_storms", n=f"{ours.storms:,}")
    if ours.dearer:
        yield say("replay_note_dearer", n=f"{ours.dearer:,}")
    elif sessions > 1:
        yield say("replay_note_never_dearer")
    if ours.summaries and ours.likely_percent - ours.kept_percent > 0.05:
        yield say("replay_note_likely", likely=percent(ours.likely_percent / 100))


def _notes_on_record(record: Billed, sessions: int, say: Wording) -> Iterator[str]:
    counted = (
        ""
        if record.sessions == sessions
        else say("replay_note_recorded", n=f"{record.sessions:,}", all=f"{sessions:,}")
    )
    unpriced = sum(usage.requests for usage in record.models if usage.dollars is None)
    missing = say("replay_note_unpriced", n=f"{unpriced:,}") if unpriced else ""
    yield say.joined(counted, missing, say("replay_note_not_alike"))


BY_MODEL = ("model", "dollars", "requests", "prompt", "read", "written", "output")


def _by_model(record: Billed, say: Wording) -> str:
    rows = [
        (
            (
                escape(usage.model),
                money(usage.dollars),
                grouped(usage.requests),
                *(tokens_short(tokens) for tokens in (usage.prompt, usage.read, usage.written, usage.output)),
            ),
            False,
        )
        for usage in record.models
    ]
    head = [say(f"replay_column_{name}") for name in BY_MODEL]
    return f"<details><summary>{escape(say('replay_by_model'))}</summary>{table(head, rows)}</details>"


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


def _sessions(found_scenes: Sequence[Scene], say: Wording) -> str:
    parts = []
    for scene in found_scenes:
        if not scene.sessions:
            continue
        overhead = say("replay_overhead", n=f"{scene.front:,}")
        facts = (say("replay_window", n=f"{scene.window:,}"), overhead, say("replay_prices", name=scene.tariff))
        where = escape(" · ".join(facts))
        listed = _session_table(scene, say)
        if scene is found_scenes[0]:
            parts.append(f'<p class="rule">{where}</p>{listed}')
        else:
            parts.append(f"<details><summary>{where}</summary>{listed}</details>")
    return card(say("replay_sessions"), "".join(parts)) if parts else ""


def _session_table(scene: Scene, say: Wording) -> str:
    shown, rest = scene.sessions[:MOST_SESSIONS], scene.sessions[MOST_SESSIONS:]
    plain, ours = _by_session(scene.whole), _by_session(scene.ours)
    kept = any(billed([session]) for session in scene.sessions)
    columns = [name for name in SESSIONS if name != "recorded" or kept]
    rows = [(_row([session], _identity(session), columns, plain, ours), False) for session in shown]
    caption = ""
    if rest:
        name = escape(say("replay_rest", n=f"{len(rest):,}"))
        rows.append((_row(rest, (name, ""), columns, plain, ours), False))
        words = say("replay_sessions_caption", shown=f"{len(shown):,}", all=f"{len(scene.sessions):,}")
        caption = f'<p class="hint">{escape(words)}</p>'
    return table([say(f"replay_column_{name}") for name in columns], rows) + caption


def _by_session(result: ReplayResult | None) -> dict[SessionFacts, Played]:
    return {played.session: played for played in result.played} if result else {}


def _identity(session: SessionFacts) -> tuple[str, str]:
    """Return two cells: the id of a session, shortened in the middle, and its source."""
    name, source = session.id, escape(session.source)
    if len(name) <= LONGEST_ID:
        return f"<code>{escape(name)}</code>", source
    half = LONGEST_ID // 2
    return f'<code title="{escape(name)}">{escape(name[:half])}…{escape(name[-half:])}</code>', source


def _row(
    sessions: Sequence[SessionFacts],
    identity: tuple[str, str],
    columns: Sequence[str],
    plain: dict[SessionFacts, Played],
    ours: dict[SessionFacts, Played],
) -> list[str]:
    record = billed(sessions)
    uncut = [plain[session] for session in sessions if session in plain]
    mine = [ours[session] for session in sessions if session in ours]
    before, after = sum(played.dollars for played in uncut), sum(played.dollars for played in mine)
    probes = [probe for played in mine for probe in played.probes]
    saved = percent(1 - after / before) if before > 0 and mine else "–"
    cells = {
        "session": identity[0],
        "source": identity[1],
        "messages": grouped(sum(session.messages for session in sessions)),
        "tokens": tokens_short(sum(session.tokens for session in sessions)),
        "requests": grouped(sum(len({paid.at for paid in played.paid}) for played in (uncut or mine))),
        "recorded": escape(money(record.dollars if record else None)),
        "uncut": escape(money(before if uncut else None)),
        "ours": f"<b>{escape(money(after if mine else None))}</b>",
        "saved": saved,
        "kept": f"{100 * sum(probe.kept for probe in probes) / len(probes):.0f}" if probes else "–",
        "cuts": grouped(sum(paid.cut for played in mine for paid in played.paid)),
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
    """Return the tariff with that name: a given one, else a well-known one, else that of a model."""
    known = {**TARIFFS, **{tariff.name: tariff for tariff in given}}
    if name in known:
        return known[name]
    with suppress(InputError):
        return tariff_of(name)
    return None


PRICES = ("input", "cache_read", "cache_write", "output")


def _priced(tariff: Tariff, say: Wording) -> str:
    """Say what the tokens of a tariff cost, and how long they stay in the cache."""
    prices = [(name, getattr(tariff.prices, name)) for name in PRICES]
    listed = [say(f"replay_price_{name}", dollars=_price(price)) for name, price in prices if price is not None]
    words = say("replay_rule_prices", name=tariff.name, prices=say.listed(*listed))
    if tariff.rules.kind == "none":
        return say.joined(words, say("replay_rule_none"))
    life = _time(tariff.rules.seconds, say)
    return say.joined(words, say(f"replay_rule_{tariff.rules.kind}", least=f"{tariff.rules.least:,}", time=life))


def _price(dollars: float) -> str:
    """Return a price as in price lists. Example: 3.0 -> $3, 0.125 -> $0.125"""
    return f"${dollars:g}"


def _time(seconds: float, say: Wording) -> str:
    for key, size in (("hours", 3_600), ("minutes", 60)):
        if seconds >= size and seconds % size == 0:
            return say(f"replay_{key}", n=f"{seconds / size:.0f}")
    return say("replay_seconds", n=f"{seconds:g}")
