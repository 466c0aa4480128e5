"""The page of a replay: whole and alone, names only text, every figure there, and no figure that is none."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings, strategies as st

from everlong.lab.replay.caches import Rules
from everlong.lab.replay.policies import COMPARED
from everlong.lab.replay.results import Paid, Played, ProbeOutcome, Recorded, ReplayResult, SessionFacts
from everlong.lab.replay.tariffs import TARIFFS, Tariff
from everlong.lab.report.numbers import money
from everlong.lab.report.replay_figures import front, growth, is_ours, running_total, scenes, turn_costs
from everlong.lab.report.replay_page import replay_page
from everlong.lab.report.wording import LANGUAGES, Wording
from everlong.windows import Prices
from tests.lab.pages import Checker

HOSTILE = '<img src=x onerror="alert(1)">&amp;'
FRONT = 12_000
SUMMARY = 2_800


# --- made-up results -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A policy in a few figures: from which share of the window it cuts, down to which, and what it does besides."""

    name: str
    high: float = 9e9
    low: float = 0.0
    each_time: bool = False
    summary: bool = False
    finds: float = 0.0
    literal: float = 1.0


WAYS = (
    Way("whole"),
    Way("auto", 0.95, 0.35, summary=True, finds=0.8, literal=0.75),
    Way("auto-trim", 0.95, 0.35, finds=0.7, literal=0.8),
    Way("newest", 0.95, 0.95, each_time=True),
    Way("drop@.95/.3", 0.95, 0.3),
    Way("drop@.95/.5", 0.95, 0.5),
    Way("langchain-clear", 1.3, 0.6, each_time=True),
)


def told(number: int, steps: int, *, recorded: bool = True) -> SessionFacts:
    model = ("claude-sonnet-4-5", "claude-haiku-4-5", "my-own-model")[number % 3]
    dollars = None if number % 3 == 2 else steps * 0.031
    paid = Recorded(
        model=model,
        requests=steps,
        prompt=steps * 60_000,
        read=steps * 55_000,
        written=steps * 4_000,
        output=steps * 400,
        dollars=dollars,
    )
    return SessionFacts(
        id=f"{number:08x}-5f2b-4c1d-9e3a-{number * 7919:012x}",
        source=("claude-code", "codex", "pi", "nanobot")[number % 4],
        messages=2 * steps + 1,
        tokens=steps * 900,
        recorded=(paid,) if recorded else (),
    )


def _paid(at: int, kind: str, prompt: int, read: int, **more: object) -> Paid:
    output = 700 if kind == "summary" else 300
    dollars = (read * 0.3 + (prompt - read) * 3.75 + output * 15) / 1e6
    fields = {"at": at, "kind": kind, "prompt": prompt, "read": read, "written": prompt - read, "output": output}
    return Paid(**fields, dollars=dollars, **more)  # type: ignore[arg-type]


def play(session: SessionFacts, way: Way, window: int, steps: int) -> Played:
    chance = random.Random(f"{session.id}{steps}")
    context, before, since = 0, 0, 0
    paid: list[Paid] = []
    probes: list[ProbeOutcome] = []
    for at in range(1, steps + 1):
        grown = chance.randint(200, 1_600)
        context, since = context + grown, since + grown
        cut = FRONT + context > way.high * window
        if cut:
            if way.summary:
                paid.append(_paid(2 * at, "summary", FRONT + context, before or FRONT))
            context = max(grown, int(way.low * window) - FRONT) + SUMMARY * way.summary
        age, luck = chance.randint(3_000, 90_000), chance.random()
        if at % 9 == 0 and age < since:
            found = age < context
            kept = found or luck < way.finds
            literal = found or luck < way.finds * way.literal
            probes.append(
                ProbeOutcome(
                    at=2 * at, kind="path", kept=kept, literal=literal, likely=1.0 if kept or not way.summary else 0.6
                )
            )
            if not kept:
                paid.append(_paid(2 * at, "reading", FRONT + context, FRONT if cut else before))
        prompt = FRONT + context
        read = min(before, prompt) if not cut else FRONT
        paid.append(_paid(2 * at, "answer", prompt, read, cut=cut, reset=cut and at > 1, over=prompt > window))
        before = prompt
    return Played(
        session=session,
        policy=way.name,
        window=window,
        front=FRONT,
        tariff="anthropic",
        paid=tuple(paid),
        probes=tuple(probes),
    )


def summed(played: Sequence[Played], uncut: float, name: str, window: int) -> ReplayResult:
    paid = [one for each in played for one in each.paid]
    probes = [probe for each in played for probe in each.probes]
    kinds = {kind: [one for one in paid if one.kind == kind] for kind in ("summary", "reading")}
    return ReplayResult(
        policy=name,
        window=window,
        front=FRONT,
        tariff="anthropic",
        played=tuple(played),
        requests=len(paid),
        prompt=sum(one.prompt for one in paid),
        read=sum(one.read for one in paid),
        written=sum(one.written for one in paid),
        output=sum(one.output for one in paid),
        dollars=sum(one.dollars for one in paid),
        uncut=uncut,
        summaries=len(kinds["summary"]),
        summary_dollars=sum(one.dollars for one in kinds["summary"]),
        readings=len(kinds["reading"]),
        reading_dollars=sum(one.dollars for one in kinds["reading"]),
        cuts=sum(one.cut for one in paid),
        resets=sum(one.reset for one in paid),
        broken=0,
        over=sum(one.over for one in paid),
        invalid=sum(bool(one.problems) for one in paid),
        storms=sum(one.storm for one in paid),
        dearer=0,
        needless=(),
        probes=len(probes),
        kept=sum(probe.kept for probe in probes),
        literal=sum(probe.literal for probe in probes),
        likely=sum(probe.likely for probe in probes),
    )


def results(
    sizes: Sequence[int] = (60, 140, 320),
    windows: Sequence[int] = (64_000,),
    ways: Sequence[Way] = WAYS,
    *,
    recorded: bool = True,
) -> list[ReplayResult]:
    sessions = [told(number, steps, recorded=recorded) for number, steps in enumerate(sizes)]
    found = []
    for window in windows:
        uncut = sum(play(one, WAYS[0], window, steps).dollars for one, steps in zip(sessions, sizes, strict=True))
        for way in ways:
            played = [play(one, way, window, steps) for one, steps in zip(sessions, sizes, strict=True)]
            found.append(summed(played, uncut, way.name, window))
    return found


def thresholds(sizes: Sequence[int] = (60, 140, 320), windows: Sequence[int] = (64_000,)) -> list[ReplayResult]:
    ways = [replace(WAYS[1], name=f"auto@{share}", high=share) for share in (0.95, 0.5, 0.65, 0.8)]
    return results(sizes, windows, ways)


RESULTS = results()
THRESHOLDS = thresholds()


# --- reading a page ------------------------------------------------------------------------------


def read(page: str) -> Checker:
    """The page, looked at: whole, without script, every picture well-formed, every figure one."""
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert not {"script", "link", "img", "iframe", "object"} & checker.tags
    for picture in pictures(page):
        for node in picture.iter():
            for name in ("d", "x", "y", "cx", "cy", "r"):
                assert not re.search(r"nan|inf", node.get(name, ""))
    page.encode()
    return checker


def pictures(page: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.S)]


def dots(page: str) -> dict[str, ElementTree.Element]:
    """The dots of the front by the first word of their names."""
    groups = [node for svg in pictures(page) for node in svg.iter("g") if node.get("class", "").startswith("dot ")]
    return {"".join(text.itertext()).split()[0]: node for node in groups for text in node.iter("text")}


# --- what holds ----------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_is_whole_and_asks_nobody_for_anything(language: str) -> None:
    page = replay_page(RESULTS, language=language, facts=["today"], thresholds=THRESHOLDS)
    found = read(page)
    assert "today" in found.text
    assert not re.search(r"https?://|url\(|@import|\sstyle=", page)
    assert "default-src 'none'" in page
    assert not re.search(r"\bnan\b|\binf\b|None", found.text)


def test_the_same_results_give_the_same_page() -> None:
    assert replay_page(RESULTS, thresholds=THRESHOLDS) == replay_page(RESULTS, thresholds=THRESHOLDS)


def test_the_verdict_says_what_it_costs_and_what_stays() -> None:
    text = read(replay_page(RESULTS)).text
    whole, ours = RESULTS[0], RESULTS[1]
    assert "In a window of 64,000 tokens" in text
    assert f"costs {money(ours.dollars)} instead of {money(whole.dollars)}: {100 * (1 - ours.ratio):.0f} % less" in text
    assert f"{ours.kept_percent:.1f} % were still in the request, {ours.literal_percent:.1f} % word for word" in text
    assert "every request fits, all are valid" in text
    assert "one cache reset each" in text
    assert "No conversation costs more with auto than uncut." in text


def test_uncut_is_said_to_be_impossible_only_where_it_is() -> None:
    assert "Sending everything is not possible in this window" in replay_page(results([320]))
    roomy = replay_page(results([320], [1_000_000]))
    assert "not possible" not in roomy
    assert "Everything fits this window" in roomy


def test_what_was_really_paid_is_told_apart_by_model() -> None:
    text = read(replay_page(RESULTS)).text
    assert "Really paid" in text
    assert money(60 * 0.031 + 140 * 0.031) in text
    assert "No price is known for 320 recorded requests" in text
    assert "my-own-model" in text
    assert "Compare the replayed figures with each other" in text
    assert "Really paid" not in read(replay_page(results([60], recorded=False))).text


def test_what_went_wrong_is_said() -> None:
    bad = replace(RESULTS[1], over=3, invalid=1, broken=2, dearer=1, resets=99)
    text = read(replay_page([RESULTS[0], bad])).text
    for said in (
        "4 requests of auto would be refused.",
        "3 over, 1 invalid",
        "2 requests of auto changed what had been sent",
        "1 conversation costs more with auto than uncut.",
        "99 resets of the cache",
    ):
        assert said in text, said
    assert "every request fits" not in text


def test_a_dearer_policy_is_said_to_be_dearer() -> None:
    assert "25 % more" in read(replay_page([replace(RESULTS[1], dollars=5.0, uncut=4.0)])).text
    assert "the same as uncut" in read(replay_page([replace(RESULTS[1], dollars=4.0, uncut=4.0)])).text


def test_every_policy_has_its_row() -> None:
    text = read(replay_page(RESULTS)).text
    for one in RESULTS[1:]:
        assert one.policy in text
        assert f"{money(one.dollars)}{100 * one.ratio:.1f} %{one.kept_percent:.1f}{one.literal_percent:.1f}" in text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("policy", [*COMPARED, "newest", "cleared"])
def test_every_policy_that_is_compared_is_described(policy: str, language: str) -> None:
    about = Wording(language)(f"replay_about_{policy.partition('@')[0]}")
    assert about in read(replay_page([replace(RESULTS[1], policy=policy)], language=language)).text


def test_who_would_be_refused_is_hollow_and_not_in_front() -> None:
    page = replay_page(RESULTS)
    refused = {one.policy for one in RESULTS if one.over}
    assert {"whole", "langchain-clear"} <= refused
    assert not front(RESULTS) & refused
    found = dots(page)
    assert "faint" in found["langchain-clear"].get("class", "")
    assert "faint" not in found["newest"].get("class", "")
    assert found["auto"].get("class") == "dot ours"


def test_the_front_is_what_no_other_beats() -> None:
    def one(name: str, dollars: float, literal: int, **more: int) -> ReplayResult:
        return replace(RESULTS[1], policy=name, dollars=dollars, uncut=10.0, literal=literal, probes=100, **more)

    given_results = [one("a", 4, 75), one("b", 5, 75), one("c", 6, 90), one("d", 7, 80), one("e", 1, 99, over=1)]
    assert front(given_results) == {"a", "c"}
    assert front([one("a", 4, 75), one("b", 4, 75)]) == {"a", "b"}


def test_windows_have_a_verdict_each() -> None:
    text = read(replay_page(results(windows=[64_000, 128_000]))).text
    assert text.index("In a window of 64,000 tokens") < text.index("In a window of 128,000 tokens")


def test_the_threshold_in_use_is_marked() -> None:
    page = replay_page(RESULTS, thresholds=THRESHOLDS)
    rows = re.findall(r'<tr class="ours"><td>([^<]*)<small>in use</small>', page)
    assert rows == ["95 %"]
    assert "lower is cheaper, higher is safer" in page
    order = re.findall(r"<td>(\d+) %(?:<small>in use</small>)?</td>", page)
    assert order == ["50", "65", "80", "95"]


def test_thresholds_that_are_no_figures_are_only_rows() -> None:
    odd = [replace(THRESHOLDS[0], policy="auto@wide"), replace(THRESHOLDS[1], policy="auto@nan")]
    assert "auto@wide" in read(replay_page(RESULTS, thresholds=odd)).text


def test_of_many_conversations_the_dearest_have_rows_and_the_rest_is_counted() -> None:
    page = replay_page(results([20 + number for number in range(45)], ways=WAYS[:2]))
    assert "The dearest 40 of 45" in page
    assert "and 5 more" in page
    assert page.count("<code title=") == 40
    assert f'title="{told(44, 64).id}"' in page
    assert f'title="{told(0, 20).id}"' not in page


def test_cuts_and_summaries_of_one_conversation_are_marked() -> None:
    only = results([320])
    cuts = only[1].cuts
    drawn = [svg for svg in pictures(replay_page(only)) if svg.find("g") is not None][:2]
    for svg in drawn:
        assert len([node for node in svg.iter("path") if node.get("class") == "mark"]) == cuts > 0
        assert len([node for node in svg.iter("circle") if node.get("class") == "mark"]) == only[1].summaries > 0


def test_ours_does_not_grow_and_uncut_does() -> None:
    whole, ours = (growth(turn_costs(one)) for one in results([320])[:2])
    assert whole is not None
    assert ours is not None
    assert whole[2] > 1.5 > ours[2]
    assert "times as much as one around" in read(replay_page(results([320]))).text


def test_means_are_of_the_conversations_that_go_on() -> None:
    session = told(0, 3)
    one = play(session, WAYS[0], 64_000, 3)
    flat = replace(one, paid=tuple(replace(paid, dollars=1.0) for paid in one.paid))
    short = replace(flat, paid=tuple(replace(paid, dollars=3.0) for paid in flat.paid[:1]))
    assert turn_costs(summed([flat, short], 1, "whole", 64_000)) == ((1.0, 2.0), (2.0, 1.0), (3.0, 1.0))


def test_a_running_total_ends_at_the_whole_sum() -> None:
    one = play(told(0, 500), WAYS[1], 64_000, 500)
    points = running_total(one)
    assert len(points) <= 130
    assert points[-1] == (500.0, pytest.approx(one.dollars))
    assert [x for x, _ in points] == sorted({x for x, _ in points})


@pytest.mark.parametrize(
    ("policy", "ours"),
    [("auto", True), ("auto-trim", True), ("auto@0.6", True), ("automatic", False), ("whole", False)],
)
def test_ours_is_known_by_its_name(policy: str, ours: bool) -> None:
    assert is_ours(policy) is ours


@pytest.mark.parametrize(
    ("dollars", "said"),
    [
        (0.0, "$0"),
        (0.00001, "< $0.0001"),
        (0.0123, "$0.0123"),
        (0.99999, "$1.00"),
        (12.344, "$12.34"),
        (999.996, "$1,000"),
        (1234.5, "$1,234"),
        (1234567.0, "$1,234,567"),
        (None, "–"),
        (float("nan"), "–"),
    ],
)
def test_money_is_said_alike_everywhere(dollars: float | None, said: str) -> None:
    assert money(dollars) == said


def test_prices_and_cache_rules_are_told() -> None:
    text = read(replay_page(RESULTS)).text
    assert "$3 sent, $0.3 read from the cache, $3.75 written to it, $15 received" in text
    assert "forgets it after 5 minutes without use" in text
    own = Tariff(name="mine", prices=Prices(7.0, 8.0), rules=Rules(kind="none"))
    text = read(replay_page([replace(RESULTS[1], tariff="mine")], tariffs=[own], pauses="turns")).text
    assert "$7 sent, $8 received. Nothing is cached" in text
    assert Wording("en")("replay_pauses_turns") in text
    unknown = read(replay_page([replace(RESULTS[1], tariff="nobody's prices")])).text
    assert "prices: nobody's prices" in unknown
    assert all(name in read(replay_page([replace(RESULTS[1], tariff=name)])).text for name in TARIFFS)


def test_chinese_pages_are_chinese() -> None:
    text = read(replay_page(RESULTS, language="zh", thresholds=THRESHOLDS)).text
    for key in ("replay_thresholds_rule", "replay_rule_probe", "replay_turn_caption"):
        assert Wording("zh")(key) in text
    names = {"auto", "token", "everlong", "lab", "codex", "nanobot", "anthropic", "newest"}
    assert set(re.findall(r"(?<![\w@./-])[a-z]{3,}(?![\w@./-])", text)) <= names


# --- hostile and empty ---------------------------------------------------------------------------


def test_nothing_is_said_to_be_nothing() -> None:
    assert "There are no results." in read(replay_page([])).text


@pytest.mark.parametrize(
    "given_results",
    [
        results([1]),
        results([2, 1], ways=WAYS[:1]),
        results([30], ways=WAYS[1:2]),
        results([30], ways=WAYS[3:]),
        results([]),
        [replace(one, dollars=0.0, uncut=0.0) for one in results([3])],
        [
            replace(one, played=(replace(one.played[0], paid=(), probes=()),), probes=0, kept=0, literal=0)
            for one in results([3])
        ],
        [
            summed(
                [replace(each, paid=tuple(replace(paid, dollars=0.0) for paid in each.paid)) for each in one.played],
                0,
                one.policy,
                64_000,
            )
            for one in results([12, 2])
        ],
    ],
    ids=["one request", "only uncut", "only ours", "neither", "no sessions", "no dollars", "nothing sent", "all free"],
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_small_and_empty_results_have_a_page(given_results: list[ReplayResult], language: str) -> None:
    found = read(replay_page(given_results, language=language, thresholds=given_results[:1]))
    assert not re.search(r"\bnan\b|\binf\b|None", found.text)


NAMES = st.one_of(
    st.just(HOSTILE), st.text(max_size=60), st.sampled_from(["", "中文" * 40, "\x00\x1b[31m", "]]>", "\ud800"])
)
SMALL = results([14])


@settings(deadline=None, max_examples=40)
@given(NAMES, NAMES, NAMES, st.sampled_from(LANGUAGES))
def test_names_are_only_text(policy: str, identity: str, source: str, language: str) -> None:
    recorded = replace(told(0, 14).recorded[0], model=source)
    session = replace(told(0, 14), id=identity, source=source, recorded=(recorded,))
    hostile = [
        replace(
            one,
            policy=policy if at else one.policy,
            tariff=source,
            played=tuple(replace(each, session=session) for each in one.played),
        )
        for at, one in enumerate(SMALL)
    ]
    page = replay_page(hostile, language=language, facts=[identity], thresholds=hostile[:2])
    known = {"html", "head", "meta", "title", "style", "body", "main", "header", "p", "b", "h1", "h2", "h3", "span"}
    known |= {"section", "div", "svg", "path", "text", "circle", "g", "ul", "li", "table", "thead", "tbody", "tr", "th"}
    known |= {"td", "small", "code", "details", "summary", "footer"}
    assert read(page).tags <= known


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(st.floats(0, 1e9), st.integers(0, 50), st.integers(0, 50), st.floats(0, 1e9)), min_size=1, max_size=14
    )
)
def test_any_figures_can_be_drawn(figures: list[tuple[float, int, int, float]]) -> None:
    given_results = [
        replace(
            SMALL[1], policy=f"p{at}", dollars=dollars, literal=literal, kept=max(kept, literal), probes=50, uncut=uncut
        )
        for at, (dollars, literal, kept, uncut) in enumerate(figures)
    ]
    read(replay_page(given_results, thresholds=[replace(one, policy=f"auto@{one.literal}") for one in given_results]))
    assert len(scenes(given_results)) == 1
