"""Which sentences of a user hold from now on, in English and Chinese, and which only look like it."""

import pytest
from hypothesis import given, strategies as st

from everlong.relevance.talk.wishes import EDGE, LONGEST, MOST_OF_ONE, wishes_in

HOLD = (
    "Always answer in German.",
    "Please never use emojis.",
    "From now on, keep it short.",
    "From now on I want you to be brief.",
    "I'm vegetarian, so from now on only suggest vegetarian dishes.",
    "Whenever I ask about code, show Python first.",
    "When I paste code, review it before anything else.",
    "I prefer metric units.",
    "I’d really prefer to see tests first.",
    "Could you always answer in French, please?",
    "You can call me Sam.",
    "Remember that I am allergic to peanuts.",
    "You no longer need to add timestamps.",
    "Don't ever touch the main branch.",
    "In all your replies, cite a source.",
    "Make sure to always run the tests.",
    "Until I say otherwise, write in British English.",
    "Going forward, use tabs.",
    "以后都用中文回答。",
    "以后请先给结论。",
    "请始终使用公制单位。",
    "从现在起，回答都用一句话。",
    "每次回答都要附上来源。",
    "我更喜欢简短的回答。",
    "请记住我对花生过敏。",
    "叫我小林就行。",
    "不要再用表情符号了。",
    "永远不要删除文件。",
    "你能以后都用英文回答吗？",
    "不用再加时间戳了。",
    "凡是代码都要加注释。",
)
PASS = (
    "From now on I will run every day.",
    "I've never been to Paris.",
    "I always wanted a dog.",
    "You never answered my question.",
    "Never mind, I found it.",
    "Always good to hear from you!",
    "Whenever I ask my boss he says no.",
    "Do you prefer tea?",
    "What should I always pack for a hike?",
    "Call me back tomorrow.",
    "Remember that function we wrote?",
    "I remember to lock the door.",
    "How do we continue going forward?",
    'He said "always answer in German to me" and left.',
    "三天以后我要出差。",
    "毕业以后我想去上海。",
    "从现在起我要减肥。",
    "每次我去都下雨。",
    "我喜欢猫。",
    "你还记得我说过什么吗？",
    "我每次都迟到。",
    "我一直很忙。",
    "她总是迟到。",
)


@pytest.mark.parametrize("text", HOLD)
def test_these_hold_from_now_on(text: str) -> None:
    assert wishes_in(f"Thanks.\n{text}\nHow far is it to Lund?") == (text,)


@pytest.mark.parametrize("text", PASS)
def test_these_do_not(text: str) -> None:
    assert wishes_in(f"Thanks.\n{text}\nHow far is it to Lund?") == ()


def test_a_wish_is_cut_out_word_for_word_with_what_it_quotes_and_lists() -> None:
    assert wishes_in('Ok! Always write dates as "4 May 2026" for me. Go.') == (
        'Always write dates as "4 May 2026" for me.',
    )
    assert wishes_in("From now on:\n- be brief\n- use tabs\n\nThanks") == ("From now on:\n- be brief\n- use tabs",)
    assert wishes_in("以后请先给结论；不要再用表格。谢谢") == ("以后请先给结论；", "不要再用表格。")


def test_a_page_of_rules_is_somebody_elses() -> None:
    rules = [f"Always close gate {n}." for n in range(MOST_OF_ONE + 1)]
    assert wishes_in("\n".join(rules[:-1])) == tuple(rules[:-1])
    assert wishes_in("\n".join(rules)) == ()


@given(
    st.text(alphabet=st.sampled_from('always never from now on I prefer 以后都请 .!?\n>`"<>/:-a')), st.integers(0, 3)
)
def test_every_wish_stands_in_the_text_and_is_bounded(text: str, times: int) -> None:
    told = text + "x" * times * EDGE
    for wish in wishes_in(told):
        assert wish in told or "\n" in wish
        assert len(wish) <= LONGEST
