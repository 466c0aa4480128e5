"""Pictures of figures: labels keep apart, names are only text, the same figures give the same picture."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings, strategies as st

from everlong.lab.report.svg import Bar, Line, bar_chart, line_plot, spread, text_width

HOSTILE = '<script>alert("&")</script>'


def plot(*lines: Line, ceiling: tuple[str, float] | None = None) -> ElementTree.Element:
    return ElementTree.fromstring(line_plot(lines, label="a plot", x_name="budget", ceiling=ceiling))


def names_and_heights(picture: ElementTree.Element) -> dict[str, float]:
    return {
        "".join(text.itertext()): float(text.get("y", "0"))
        for group in picture.iter("g")
        for text in group.iter("text")
    }


@settings(deadline=None)
@given(st.lists(st.floats(0, 300), min_size=1, max_size=17))
def test_places_keep_apart_stay_inside_and_keep_their_order(wanted: list[float]) -> None:
    places = spread(wanted, 17, 0, 300)
    ordered = sorted(places)
    assert all(after - before >= 17 - 1e-6 for before, after in pairwise(ordered))
    assert ordered[0] >= -1e-6
    assert ordered[-1] <= 300 + 1e-6
    for one in range(len(wanted)):
        for other in range(len(wanted)):
            assert wanted[one] >= wanted[other] or places[one] < places[other]


def test_places_that_are_free_are_taken_as_they_are() -> None:
    assert spread([10, 200, 90], 17, 0, 300) == [10, 200, 90]
    assert spread([50, 51], 10, 0, 100) == [45.5, 55.5]
    assert spread([], 10, 0, 100) == []


def test_a_larger_budget_stands_further_right_by_the_same_step_for_each_doubling() -> None:
    picture = plot(Line("a", ((1_000, 10), (2_000, 50), (4_000, 90))))
    x = [float(dot.get("cx", "0")) for dot in picture.iter("circle")]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.2)
    y = [float(dot.get("cy", "0")) for dot in picture.iter("circle")]
    assert y[0] > y[1] > y[2]


def test_names_of_lines_that_end_together_do_not_overlap() -> None:
    lines = [Line(f"strategy {number}", ((1_000, 50), (2_000, 80.0 + number / 100))) for number in range(16)]
    heights = sorted(names_and_heights(plot(*lines)).values())
    assert len(heights) == 16
    assert min(after - before for before, after in pairwise(heights)) >= 16.9


def test_ours_is_drawn_last_so_that_it_stands_in_front() -> None:
    picture = plot(Line("auto", ((1, 2),), ours=True), Line("newest", ((1, 2),)))
    assert [group.get("class") for group in picture.iter("g")] == ["s1", "ours"]


def test_one_budget_alone_can_be_drawn() -> None:
    assert len(list(plot(Line("a", ((8_000, 40),))).iter("circle"))) == 1


def test_a_level_that_nobody_can_pass_is_drawn() -> None:
    assert "85.0 %" in ElementTree.tostring(plot(Line("a", ((1, 2),)), ceiling=("all", 85)), encoding="unicode")


def test_no_lines_and_no_bars_are_no_picture() -> None:
    assert line_plot([Line("a", ())], label="x", x_name="y") == ""
    assert bar_chart([], label="x") == ""


def test_names_are_only_text() -> None:
    drawn = line_plot([Line(HOSTILE, ((1, 2),))], label=HOSTILE, x_name=HOSTILE) + bar_chart(
        [Bar(HOSTILE, 1, HOSTILE)], label=HOSTILE
    )
    assert "<script" not in drawn
    assert HOSTILE in "".join(ElementTree.fromstring(f"<p>{drawn}</p>").itertext())


def test_bars_are_as_long_as_their_values() -> None:
    picture = ElementTree.fromstring(
        bar_chart([Bar("a", 100, "100 %", part=50), Bar("b", 25, "25 %")], label="x", most=100)
    )
    lengths = [float(box.get("width", "0")) for box in picture.iter("rect")]
    assert lengths[1] == pytest.approx(lengths[0] / 2, abs=0.2)
    assert lengths[2] == lengths[3] == pytest.approx(lengths[0] / 4, abs=0.2)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.text("abc中文", max_size=80), st.floats(0, 100)), min_size=1, max_size=5))
def test_bars_and_their_words_stay_inside_the_picture(rows: list[tuple[str, float]]) -> None:
    picture = ElementTree.fromstring(bar_chart([Bar(name, value, f"{value:.1f} %") for name, value in rows], label="x"))
    width = float(picture.get("viewBox", "").split()[2])
    for text in picture.iter("text"):
        words, x = (text.text or "", float(text.get("x", "0")))
        if text.get("class") == "value":
            assert x + text_width(words) <= width
    assert all(float(box.get("x", "0")) + float(box.get("width", "0")) <= width for box in picture.iter("rect"))


def test_a_long_name_is_shortened_and_said_whole_when_pointed_at() -> None:
    name = "a very long name of a strategy that somebody thought of on a long evening"
    drawn = bar_chart([Bar(name, 1, "1")], label="x")
    assert f"<title>{name}</title>" in drawn
    assert re.search(r">a very long name[^<]*…<", drawn)
