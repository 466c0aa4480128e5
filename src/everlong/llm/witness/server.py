"""The witness as a model: a script for any wire format, and a server on this machine with its own key."""

import json
import re
import secrets

from everlong.core import JsonText, Message, Role, said_by_users
from everlong.llm.endpoints import Endpoint
from everlong.llm.scripted.model import Window
from everlong.llm.scripted.script import Answer, ReceivedRequest
from everlong.llm.scripted.server import ScriptedServer
from everlong.llm.witness.extracts import extract_summary, extract_title
from everlong.llm.witness.passages import Where, passages_of
from everlong.llm.witness.testimony import Quotation, asks, key_words, quotations_for
from everlong.llm.witness.words import ABSENT, SMALL_TALK, WORDS, place_line
from everlong.relevance import in_language, language_of
from everlong.summarize import asked_style, asked_title
from everlong.tokens import Counter

__all__ = ["WITNESS", "WITNESS_WINDOW", "WitnessServer", "bear_witness"]

#: The name of the model, and of its source.
WITNESS = "witness"
WITNESS_WINDOW = 12_288  # tokens; small, so that a conversation soon needs a compaction
PACE = 0.015  # seconds between two pieces of an answer
REMEMBERED = 8  # requests, to find the prefix that the next one shares with them
ASKING_FOR_A_SUMMARY = 3  # messages: the request, an unusable answer, and what is wrong with it
MOST_KEY_WORDS = 8
LONGEST_QUESTION = 4_000  # characters
COUNTER = Counter(WITNESS)


def bear_witness(asked: ReceivedRequest) -> Answer:
    """Answer a request: quote, call recall first, say that nothing is there, or write a summary or a title."""
    messages = asked.messages
    for message in reversed(messages[-ASKING_FOR_A_SUMMARY:]):
        wanted = asked_style(message.text) if message.role is Role.USER else None
        if wanted is not None:
            end = next(at for at, other in enumerate(messages) if other is message) + 1
            return Answer(text=extract_summary(messages[:end], wanted[0], COUNTER))
    question = next(said_by_users(messages), "")[:LONGEST_QUESTION]
    title = asked_title(question)
    if title is not None:
        return Answer(text=extract_title(title[0]))
    return _answer(question, asked)


def _answer(question: str, asked: ReceivedRequest) -> Answer:
    language = language_of([question])
    words = in_language(WORDS, language)
    if not question.strip() or SMALL_TALK.fullmatch(question.strip()):
        return Answer(text=words["hello"], between=PACE)
    evidence = _without_question(asked.messages, question)
    quotations = quotations_for(question, evidence)
    if quotations:
        return Answer(text=_quoted(quotations, language, len(_counted(asked.messages))), between=PACE)
    looked_for = key_words(question)
    tool = _recall_tool(asked.tools)
    recalled = asked.messages[-1].role is Role.TOOL if asked.messages else False
    if tool and looked_for and not recalled and asks(question):
        what = json.dumps({"what": " ".join(looked_for[:MOST_KEY_WORDS])}, ensure_ascii=False)
        return Answer(calls=((tool, what),))
    if not asks(question):
        return Answer(text=words["noted"], between=PACE)
    return Answer(text=_absent(asked, language, looked_for, recalled=recalled), between=PACE)


def _without_question(messages: tuple[Message, ...], question: str) -> tuple[Message, ...]:
    """Return the request without the question, wherever it is; what was recalled for it stays."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role is Role.USER and messages[at].text[:LONGEST_QUESTION] == question:
            # An empty message takes its place, so that the others keep their numbers.
            return (*messages[:at], Message(Role.USER, ()), *messages[at + 1 :])
    return messages


def _counted(messages: tuple[Message, ...]) -> list[Message]:
    return [message for message in messages if message.role is not Role.SYSTEM]


def _quoted(quotations: list[Quotation], language: str, messages: int) -> str:
    """Return the answer in Markdown: each quotation in a block, code as code, with its place below."""
    blocks = [in_language(WORDS, language)["found"]]
    for quotation in quotations:
        passage = quotation.passage
        place = place_line(language, passage.where, passage.number, passage.name, messages)
        lines = quotation.text.split("\n")
        if passage.where is Where.RESULT:
            lines = ["```text", *lines, "```"]
        blocks.append("\n".join([*(f"> {line}" for line in lines), ">", place]))
    return "\n\n".join(blocks)


def _absent(asked: ReceivedRequest, language: str, looked_for: list[str], *, recalled: bool) -> str:
    words = in_language(WORDS, language)
    kinds = {passage.where for passage in passages_of(asked.messages)}
    sent = words["sent"].format(messages=len(_counted(asked.messages)), tokens=f"{asked.tokens:,}")
    sent += words["with_summary"] if Where.SUMMARY in kinds else ""
    sent += words["with_excerpts"] if kinds & {Where.EXCERPT, Where.RECALLED} else ""
    looked = words["looked"].format(words=words["between"].join(looked_for[:MOST_KEY_WORDS])) if looked_for else ""
    space = "" if language == "zh" else " "
    found = words["recalled"] if recalled else ""
    return f"{in_language(ABSENT, language)}{found}\n\n{sent}{words['end']}{space}{looked}".rstrip()


def _recall_tool(tools: tuple[JsonText, ...]) -> str:
    """Return the name of the tool that recalls what was left out; "" if none is offered."""
    for tool in tools:
        name = re.search(r'"name"\s*:\s*"([\w-]*recall)"', tool)
        if name is not None:
            return name[1]
    return ""


class WitnessServer(ScriptedServer):
    """The witness over HTTP, inside a `with` statement. A key protects it from web pages of other sites."""

    def __init__(self, window: int = WITNESS_WINDOW) -> None:
        super().__init__(bear_witness, window=Window(window, told=True), models=(WITNESS,))
        self.key = secrets.token_urlsafe(24)
        self.model.counter, self.model.remembers = COUNTER, REMEMBERED
        self.held = {}  # the witness holds no conversations

    def endpoint(self, fmt: str = "openai-chat") -> Endpoint:
        """Return its endpoint for our own clients."""
        return Endpoint(url=self.url, fmt=fmt, key=self.key)
