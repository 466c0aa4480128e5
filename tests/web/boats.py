"""A long talk about boats, and a model that can sum it up."""

from typing import Any

from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Step
from everlong.llm.scripted.script import Script
from tests.engine.authors import structured
from tests.web.running import Page

__all__ = [
    "CHAT_SUMMARY",
    "SUMMARY",
    "TALKS",
    "WINDOW",
    "WORDS",
    "fill",
    "is_asked_to_summarise",
    "points",
    "summaries_asked",
    "talks",
]

WINDOW = 8_192
FILLING = " ".join(f"The boat number {number} lies at the pier." for number in range(16))
SUMMARY = structured(
    context="The user asks about the boats that lie at the pier, one question after the other.",
    decisions=[],
    constraints=[],
    open_questions=[],
    file_changes=[],
    done=["The questions about the boats at the pier were answered."],
    next=[],
)
#: The same in the parts that the Chatbox document wants.
CHAT_SUMMARY = structured(
    finished_tasks=["The questions about the boats at the pier were answered."],
    current_state="The user asks about the boats that lie at the pier, one question after the other.",
    key_context=[],
    next_steps=[],
)
#: What a request for a summary, or for its correction, says.
ASKED = ("Answer with one JSON object", "This summary cannot be used")


def is_asked_to_summarise(asked: ReceivedRequest) -> bool:
    return any(sign in asked.messages[-1].text for sign in ASKED)


def talks(summary: Step) -> Script:
    """A model that answers at some length, and writes that summary when it is asked for one."""

    def script(asked: ReceivedRequest) -> Step:
        if is_asked_to_summarise(asked):
            return CHAT if summary is STRUCTURED and "finished_tasks" in asked.messages[-1].text else summary
        return Answer(text=f"That is the answer number {asked.number}. {FILLING} {FILLING}")

    return script


STRUCTURED, CHAT = Answer(text=SUMMARY), Answer(text=CHAT_SUMMARY)
TALKS = talks(STRUCTURED)
WORDS = "questions about the boats at the pier were answered"


def fill(page: Page, thread: str, turns: int) -> list[dict[str, Any]]:
    """So many long turns; all that was told."""
    events = []
    for number in range(turns):
        events += page.say(thread, f"Question {number}: what about it? {FILLING}")
    return events


def summaries_asked(server: ScriptedServer) -> list[ReceivedRequest]:
    return [asked for asked in server.requests if is_asked_to_summarise(asked)]


def points(page: Page, thread: str) -> list[dict[str, Any]]:
    return [row for row in page.rows(thread) if row["kind"] in ("summary", "cut")]
