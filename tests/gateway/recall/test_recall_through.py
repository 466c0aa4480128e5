"""The recall tool through the gateway in every format: the model recalls, the client sees one answer."""

import json
import re

import pytest

from everlong.core import Message, Role, Text
from everlong.gateway.recall.tool import NAME
from everlong.llm import Answer, ReceivedRequest, ScriptedServer, Window
from everlong.wire import ReplyStream, format_named
from tests.gateway.resending import post, valid_upstream
from tests.gateway.running import RunningGateway
from tests.gateway.talking import FORMATS, FRAMINGS, PATHS, STREAMS

FACT = "The winter code of the harbour office is QX-4471."
WINDOW = Window(8_000, told=True)


def talk() -> list[Message]:
    """A fact, and much that is about something else; then the question."""
    said = [Message(Role.USER, (Text("Read the pages with me."),)), Message(Role.ASSISTANT, (Text("Gladly."),))]
    for page in range(24):
        lines = f"Page {page}. " + f"Crate {page} holds {page * 3} lamps. " * 70
        said.append(Message(Role.USER, (Text(f"{lines} {FACT}" if page == 1 else lines),)))
        said.append(Message(Role.ASSISTANT, (Text(f"Page {page} is read."),)))
    return [*said, Message(Role.USER, (Text("What did I say about winter?"),))]


def clerk(asked: ReceivedRequest) -> Answer:
    """Recall once, then say what was found."""
    results = asked.messages[-1].results
    if results:
        found = re.search(r"QX-\d+", str(results))
        return Answer(text=f"The code is {found[0] if found else 'unknown'}.")
    return Answer(text="Let me look. ", calls=((NAME, '{"what": "winter code of the harbour office"}'),))


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_what_the_model_recalls_is_one_answer_for_the_client(fmt: str, streamed: bool) -> None:
    format_ = format_named(fmt)
    path = STREAMS[fmt] if streamed else PATHS[fmt]
    body = {"model": "gpt-4o", **format_.write_history(talk())}
    body |= {format_.api.stream: streamed} if format_.api.stream else {}
    body |= {"max_tokens": 500} if format_.api.needs_length else {}
    with (
        ScriptedServer(clerk, window=WINDOW, models=("gpt-4o",)) as server,
        RunningGateway(upstream=server.url, recall_tool=True, mode="trim") as gateway,
    ):
        status, headers, answer = post(gateway, path, json.dumps(body).encode())
        assert (status, headers["x-everlong-managed"]) == (200, "yes"), answer
        valid_upstream(server)
        assert len(server.requests) == 2
        assert server.requests[1].messages[-1].results
    events = FRAMINGS[fmt].decoder()
    reader = format_.reader()
    stream = ReplyStream(reader)
    for piece in (events.feed(answer), events.close()) if streamed else (answer,):
        list(stream.feed(piece))
    list(stream.close())
    said = reader.finished().message
    assert (said.text.split(), said.calls) == (["Let", "me", "look.", "The", "code", "is", "QX-4471."], ())
    assert NAME.encode() not in answer
