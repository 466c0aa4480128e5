"""The exceptions of the SDKs that are loaded, which a framework may raise unchanged.

No SDK is imported. Frameworks turn some refusals into their own errors and let others through; the engine finds out
which of them are overflows.
"""

import sys

__all__ = ["sdk_errors"]

#: The base class of each SDK's errors.
ERRORS = (
    ("anthropic", "APIError"),
    ("botocore.exceptions", "ClientError"),
    ("google.genai.errors", "APIError"),
    ("litellm.exceptions", "APIError"),
    ("mistralai.models", "SDKError"),
    ("ollama", "ResponseError"),
    ("openai", "APIError"),
)


def sdk_errors() -> tuple[type[Exception], ...]:
    """Return the exception classes of all SDKs that are loaded."""
    found = (getattr(sys.modules.get(module), name, None) for module, name in ERRORS)
    return tuple(error for error in found if isinstance(error, type) and issubclass(error, Exception))
