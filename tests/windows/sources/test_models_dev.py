"""Reading models.dev's own shape."""

import pytest

from everlong.core import Json
from everlong.windows.entries import Entry
from everlong.windows.sources.models_dev import parse_models_dev

BODY: Json = {
    "openai": {
        "id": "openai",
        "env": ["OPENAI_API_KEY"],
        "name": "OpenAI",
        "models": {
            "gpt-5": {
                "id": "gpt-5",
                "modalities": {"input": ["text", "image"], "output": ["text"]},
                "cost": {"input": 1.25, "output": 10, "cache_read": 0.125},
                "limit": {"context": 400_000, "input": 272_000, "output": 128_000},
            },
            "text-embedding-3-small": {"limit": {"context": 8_191, "output": 1_536}},
            "painter": {"modalities": {"output": ["image"]}, "limit": {"context": 4_096}},
            "priced-only": {"cost": {"input": 1, "output": 2}},
            "free": {"limit": {"context": 0, "output": 0}, "cost": {"input": 0, "output": 0}},
            "broken": "?",
        },
    },
    "google-vertex-anthropic": {"models": {"claude-opus-4-5@20251101": {"limit": {"context": 200_000}}}},
    "empty": {"id": "empty"},
    "broken": [],
}


def test_chat_models_with_their_limits_and_prices() -> None:
    registry = parse_models_dev(BODY, "2026-08-01")
    assert registry.entries == (
        Entry("openai", "gpt-5", "models.dev", "2026-08-01", 400_000, 272_000, 128_000, 1.25, 10.0, 0.125),
        Entry("openai", "priced-only", "models.dev", "2026-08-01", usd_input=1.0, usd_output=2.0),
        Entry("openai", "free", "models.dev", "2026-08-01", usd_input=0.0, usd_output=0.0),
        Entry("google-vertex", "claude-opus-4-5@20251101", "models.dev", "2026-08-01", 200_000),
    )


@pytest.mark.parametrize("body", [None, [], "x", {}, {"openai": None}, {"openai": {"models": []}}], ids=repr)
def test_what_has_another_shape_is_an_empty_registry(body: Json) -> None:
    assert len(parse_models_dev(body, "2026-08-01")) == 0
