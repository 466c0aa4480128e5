"""A2, E1, E2, E3, E6, I1: hostile summarisers crossed with hostile providers, over HTTP.

Every pair ends, in bounded calls; nothing false is committed and nothing stored is lost.
"""

import pytest

from everlong.core import Point
from everlong.engine import Author, Call, Failed, Finished, Summaries
from everlong.errors import EverlongError
from everlong.llm import HttpModel, ScriptedServer, reads_files
from everlong.llm.scripted.hostile import HOSTILE
from everlong.llm.scripted.script import Script
from tests.core.build import assistant, calls, result, user
from tests.engine.authors import accounts, over_http_with
from tests.engine.hostile_authors import HOSTILE_AUTHORS
from tests.engine.talking import Talk, pages

#: Requests of one attempt: two by our count, each tried twice by the client where that is worth it.
MOST_CALLS = 4
PROVIDERS: dict[str, Script | None] = {
    "a kind provider": None,
    **{name: HOSTILE[name]() for name in ("overflows at random", "reports a third", "reports sums", "says nothing")},
    "always 503": HOSTILE["always 503"](),
}
EARLIER = [
    message
    for at in range(6)
    for message in (
        user(f"Question {at}: what does function_{at} do?"),
        calls(f"old_{at}", arguments=f'{{"path": "src/file_{at}.py"}}'),
        result(f"old_{at}", pages(at, 40)),
        assistant(f"Answer {at}."),
    )
]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", HOSTILE_AUTHORS)
def test_A2_nothing_false_is_committed_nothing_is_lost_and_it_ends(name: str, provider: str) -> None:
    hostile = HOSTILE_AUTHORS[name]
    seconds = 0.2 if name == "silent" else 20.0

    async def run(model: HttpModel, writing: HttpModel) -> None:
        talk = Talk(model, call=Call(model="gpt-4o", max_tokens=500))
        talk.threads.append(talk.thread, EARLIER)
        author = Author(model=writing, name="gpt-4o-mini", seconds=seconds)
        summaries = Summaries(talk.engine, [author], own_model=False)
        for turn in range(2):
            before, asked = talk.stored, len(writer.requests)
            try:
                last = (await talk.say(f"And question {turn}?"))[-1]
                assert isinstance(last, Finished | Failed)
            except EverlongError:
                assert provider != "a kind provider"
            await summaries.compact(talk.thread, talk.call, model)
            assert len(writer.requests) - asked <= MOST_CALLS
            assert talk.stored[: len(before)] == before
        _nothing_false(talk, hostile.never)
        talk.one_outcome_each()
        assert not talk.threads.unfinished(talk.thread)

    script = PROVIDERS[provider] or reads_files(1)
    with ScriptedServer(script) as server, ScriptedServer(hostile.script) as writer:
        over_http_with((server, writer), run)


def _nothing_false(talk: Talk, never: tuple[str, ...]) -> None:
    """No word of the hostile answer stands in the thread; what stands instead was put together by rules."""
    made = accounts(talk)
    assert made
    for row in talk.threads.read(talk.thread):
        if not isinstance(row.entry, Point):
            continue
        kept = "\n".join([row.entry.account, *(message.text for message in row.entry.summary)])
        assert not [word for word in never if word in kept]
    assert all("What the user asked" in point.summary[0].text for point in made)
