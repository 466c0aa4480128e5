"""Public tables of models, one module each, and the list of all of them."""

from everlong.windows.sources.litellm import SOURCE as LITELLM_TABLE
from everlong.windows.sources.models_dev import SOURCE as MODELS_DEV_TABLE

__all__ = ["SOURCES"]

#: In the order in which they are fetched; earlier ones take precedence.
SOURCES = (MODELS_DEV_TABLE, LITELLM_TABLE)
