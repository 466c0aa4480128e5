"""Law 2: a provider that says nothing about its window refuses a conversation twice at most."""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, example, given, settings, strategies as st

from everlong.core import History
from everlong.engine import Call, Engine, Prepared
from everlong.errors import ContextOverflow
from everlong.store import MemoryThreads
from everlong.tokens import Counter
from everlong.wire import Usage
from tests.core.build import assistant, system, user

COUNTER = Counter("gpt-4o")
NAMES = ("nothing", "limit", "size", "both")


@dataclass
class Endpoint:
    """A provider with a window: what it counts is `ratio` of what the exact vocabulary says."""

    window: int
    ratio: float = 1.0
    names: str = "nothing"
    counts_reply: bool = True
    reports: bool = True
    refused: list[int] = field(default_factory=list)

    def tokens(self, messages: History) -> int:
        return int(COUNTER.messages(messages) * self.ratio)

    def answer(self, engine: Engine, prepared: Prepared) -> None:
        """Answer, after as many refusals as it takes."""
        while True:
            prompt = self.tokens(prepared.request.messages)
            size = prompt + ((prepared.request.max_tokens or 0) if self.counts_reply else 0)
            if size <= self.window:
                break
            self.refused.append(size)
            limit = self.window if self.names in ("limit", "both") else None
            requested = size if self.names in ("size", "both") else None
            prepared = engine.blocking.recover(prepared, ContextOverflow("too long", limit=limit, requested=requested))
        usage = Usage(prompt=prompt, output=20) if self.reports else None
        assert engine.blocking.record_usage(prepared, usage) is None


def talk(endpoint: Endpoint, steps: list[float], *, model: str, reply: int | None, head: float) -> None:
    engine = Engine(MemoryThreads())
    engine.blocking.append("t", [system("rule " * int(head * endpoint.window / endpoint.ratio))])
    call = Call(model=model, endpoint="http://house/v1", max_tokens=reply)
    for number, step in enumerate(steps):
        words = int(step * endpoint.window / endpoint.ratio)
        half = [f"Part {number}: " + "thing " * (words // 2), "word " * (words - words // 2)]
        engine.blocking.append("t", [user(half[0]), assistant(half[1]), user(f"And now {number}?")])
        endpoint.answer(engine, engine.blocking.prepare("t", call))
        engine.blocking.append("t", [assistant("So it is.")])


WINDOWS = st.sampled_from([4_000, 6_500, 10_000, 16_000, 32_768, 50_000])


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    endpoint=st.builds(
        Endpoint,
        window=WINDOWS,
        ratio=st.sampled_from([0.75, 1.0, 1.2, 1.4]),
        names=st.sampled_from(NAMES),
        counts_reply=st.booleans(),
        reports=st.booleans(),
    ),
    steps=st.lists(st.sampled_from([0.02, 0.1, 0.25, 0.4, 0.5]), min_size=8, max_size=14),
    model=st.sampled_from(["gpt-4o", "house-model"]),
    reply=st.sampled_from([None, 500, 1_000]),
    head=st.sampled_from([0.0, 0.1, 0.3]),
)
@example(Endpoint(100_000), [0.3] * 8, "house-model", 1_000, 0.1)
@example(Endpoint(200_000), [0.5] * 4, "house-model", 1_000, 0.1)
@example(Endpoint(4_000), [0.5] * 20, "house-model", 1_000, 0.3)
@example(Endpoint(16_000, ratio=1.4, reports=False), [0.4] * 20, "house-model", 500, 0.1)
@example(Endpoint(10_000, counts_reply=False), [0.25] * 30, "gpt-4o", None, 0.0)
def test_the_third_overflow_of_a_conversation_does_not_happen(
    endpoint: Endpoint, steps: list[float], model: str, reply: int | None, head: float
) -> None:
    talk(endpoint, steps, model=model, reply=reply, head=head)
    assert len(endpoint.refused) <= 2, endpoint.refused
