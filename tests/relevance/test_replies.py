"""Which messages reply to what was said just before them."""

import pytest

from everlong.relevance import is_reply

REPLIES = (
    "Thanks! Now make it shorter.",
    "Great, I like the second one. Write it as an email to my landlord.",
    "No, that is not what I meant: the flight is on Tuesday.",
    "That's too expensive for us. What else is there?",
    "It doesn’t compile on my machine.",
    "But why would the tax be lower there?",
    "Could you explain your last point with an example?",
    "I would take the latter option if it includes breakfast.",
    "You just said that it is free, so what is this invoice?",
    "And for two people?",
    "好的，那就按这个方案来，帮我写一封邮件。",
    "好，继续。",
    "不对，我说的是星期二的航班。",
    "刚才的第二个方案能便宜一点吗？",
    "那么两个人呢？",
)
OTHERS = (
    "What did I say about my sister's wedding?",
    "When did Caroline move to Boston?",
    "How many times did I revise the cover letter before the interview?",
    "Can you suggest some good audiobooks for me to listen to?",
    "Goodness of fit: which test did we use?",
    "Orlando or Miami: where does my cousin live?",
    "Android studio does not start. What could be the reason?",
    "我妹妹的婚礼是哪一天？",
    "好吃的餐厅有哪些？",
    "对于这门课，我需要准备什么？",
    "行程怎么安排？",
    "",
)


@pytest.mark.parametrize("message", REPLIES)
def test_a_reply_takes_up_what_was_said(message: str) -> None:
    assert is_reply(message)


@pytest.mark.parametrize("message", OTHERS)
def test_a_message_that_stands_by_itself_is_not_a_reply(message: str) -> None:
    assert not is_reply(message)
