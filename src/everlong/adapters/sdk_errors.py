"""The errors of the SDKs that are loaded: what a framework may raise as it came from a provider.

No SDK is imported. Frameworks turn some refusals into errors of their own and let others through; which of them is an
overflow is read by the engine.
"""

import sys

__all__ = ["sdk_errors"]

#: Where each SDK has the class of all its errors.
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
    """Return the classes of errors of all SDKs that are loaded."""
    found = (getattr(sys.modules.get(module), name, None) for module, name in ERRORS)
    return tuple(error for error in found if isinstance(error, type) and issubclass(error, Exception))
