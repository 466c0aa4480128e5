"""The errors of SDKs that a framework may let through."""

import anthropic
import openai

from everlong.adapters.sdk_errors import sdk_errors


def test_errors_of_the_sdks_that_are_loaded_are_known() -> None:
    assert {openai.APIError, anthropic.APIError} <= set(sdk_errors())
    assert issubclass(openai.BadRequestError, sdk_errors())
    assert not issubclass(ValueError, sdk_errors())
