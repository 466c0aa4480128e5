"""langmem's `summarize_messages`, as its documentation calls it on every turn."""

from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import BaseMessage
from langmem.short_term import summarize_messages

from everlong.lab.peers.adapters.langchain_messages import read, write
from everlong.lab.peers.shapes import SUMMARY, Fitting

MODEL = FakeListChatModel(responses=[SUMMARY])


def _summarized(messages: list[BaseMessage], budget: int) -> list[BaseMessage]:
    return summarize_messages(messages, running_summary=None, model=MODEL, max_tokens=budget).messages


STRATEGIES = {"summarize": Fitting(read=read, fit=_summarized, write=write)}
