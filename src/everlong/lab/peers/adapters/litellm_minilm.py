"""litellm's `compress(…, embedding_model=…)`: BM25 and embeddings, from our own provider that runs MiniLM here.

For dialogues. The rest is as in `litellm_compress`.
"""

from typing import Any

import litellm
from litellm import CustomLLM, compress

from everlong.lab.peers.adapters.minilm_vectors import vectors
from everlong.lab.peers.shapes import Fitting, Message


class _MiniLM(CustomLLM):
    """Embeddings without a network."""

    def embedding(self, model: str, input: list[str], model_response: Any, *_: Any, **__: Any) -> Any:  # noqa: A002
        found = vectors(input).tolist()
        model_response.model = model
        model_response.data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(found)]
        return model_response


litellm.custom_provider_map = [{"provider": "minilm", "custom_handler": _MiniLM()}]


def _compressed(messages: list[Message], budget: int) -> list[Message]:
    found = compress(messages, model="gpt-4o", compression_trigger=budget, embedding_model="minilm/all-MiniLM-L6-v2")
    return found["messages"]


STRATEGIES = {"hybrid": Fitting(read=list, fit=_compressed, write=lambda messages, _: messages)}
