"""The store under test: every engine, new and empty for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from everlong.engine import Threads
from tests.store.engines import ENGINES, Clock, Engine, Opener


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.name)
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def opener(engine: Engine, tmp_path: Path) -> Iterator[Opener]:
    with engine.place(tmp_path) as opener:
        yield opener


@pytest.fixture
def opened_stores() -> Iterator[list[Threads]]:
    stores: list[Threads] = []
    yield stores
    for store in stores:
        store.close()


@pytest.fixture
def store(opener: Opener, opened_stores: list[Threads]) -> Threads:
    made = opener(Clock())
    opened_stores.append(made)
    return made


@pytest.fixture
def reopen(opener: Opener, store: Threads, opened_stores: list[Threads]) -> Callable[[], Threads]:
    """Closes the store and opens it again, as the next process would."""

    def again() -> Threads:
        opened_stores[-1].close()
        opened_stores.append(opener(Clock()))
        return opened_stores[-1]

    return again
