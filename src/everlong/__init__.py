"""Everlong keeps conversations with language models going past the context window.

Most programs need only the names in this module. Each one is loaded on first use, so `import everlong` is fast. For
tests, `everlong.testing` has a scripted model and a scripted server.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.agent import Agent as Agent, tool as tool
    from everlong.core import Message as Message, Role as Role, Text as Text
    from everlong.engine import (
        Author as Author,
        Call as Call,
        Engine as Engine,
        Failed as Failed,
        Finished as Finished,
        Fitted as Fitted,
        Prepared as Prepared,
        Said as Said,
        Settings as Settings,
        Summaries as Summaries,
        converse as converse,
        count as count,
        fit as fit,
    )
    from everlong.errors import (
        BudgetImpossible as BudgetImpossible,
        ContextOverflow as ContextOverflow,
        EverlongError as EverlongError,
        InputError as InputError,
        MalformedHistory as MalformedHistory,
        MediaRefused as MediaRefused,
        NoThread as NoThread,
        NotRecovered as NotRecovered,
        ProviderError as ProviderError,
        RateLimited as RateLimited,
        ReplyLimitExceeded as ReplyLimitExceeded,
        StoreBusy as StoreBusy,
        StoreError as StoreError,
        ThreadBusy as ThreadBusy,
        ThreadChanged as ThreadChanged,
        ThreadExists as ThreadExists,
        WireError as WireError,
    )
    from everlong.llm import HttpModel as HttpModel, endpoint_at as endpoint_at
    from everlong.store import open_engine as open_engine, open_store as open_store
    from everlong.windows import window as window
    from everlong.wire import Usage as Usage
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "agent": "Agent tool",
            "core": "Message Role Text",
            "engine": "Author Call Engine Failed Finished Fitted Prepared Said Settings Summaries converse count fit",
            "errors": "BudgetImpossible ContextOverflow EverlongError InputError MalformedHistory MediaRefused NoThread "
            "NotRecovered ProviderError RateLimited ReplyLimitExceeded StoreBusy StoreError ThreadBusy "
            "ThreadChanged ThreadExists WireError",
            "llm": "HttpModel endpoint_at",
            "store": "open_engine open_store",
            "windows": "window",
            "wire": "Usage",
        },
    )

__version__ = "0.1.0"
