"""What may be appended to a thread through the engine."""

import asyncio

from everlong.core import Message
from everlong.engine.engine import Engine
from everlong.store import MemoryThreads
from tests.core.build import assistant, user


def test_values_and_dicts_give_the_same_rows() -> None:
    engine = Engine(MemoryThreads())

    async def run() -> None:
        await engine.append("values", [user("你好"), assistant("hello")])
        await engine.append("dicts", [{"role": "user", "content": "你好"}, {"role": "assistant", "content": "hello"}])

    asyncio.run(run())
    said = [[row.entry for row in engine.threads.read(name)] for name in ("values", "dicts")]
    texts = [[(entry.role, entry.text) for entry in entries if isinstance(entry, Message)] for entries in said]
    assert texts[0] == texts[1] != []
