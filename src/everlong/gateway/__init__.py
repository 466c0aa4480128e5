"""The gateway: any OpenAI or Anthropic client, one changed base URL.

It identifies clients, routes their requests to upstreams, lets the engine keep conversations within the window, and
forwards answers. What is special to a format stands in the format's folder of `everlong.wire`; nothing here asks which
one it is.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.gateway.clients import Client as Client, hashed as hashed, new_key as new_key
    from everlong.gateway.config import GatewayConfig as GatewayConfig
    from everlong.gateway.exchange.answer import AnswerReader as AnswerReader
    from everlong.gateway.exchange.response import COMMENT as COMMENT
    from everlong.gateway.exchange.usage import (
        PromptSizes as PromptSizes,
        UsageRewriter as UsageRewriter,
        rewritten_body as rewritten_body,
    )
    from everlong.gateway.http.server import (
        application as application,
        config_from_environment as config_from_environment,
        serve as serve,
    )
    from everlong.gateway.operations.reports import Report as Report
    from everlong.gateway.operations.services import Services as Services
    from everlong.gateway.request import FORMATS as FORMATS
    from everlong.gateway.upstreams.connections import (
        UpstreamConnections as UpstreamConnections,
        UpstreamRequest as UpstreamRequest,
    )
    from everlong.gateway.upstreams.routing import Upstream as Upstream
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "clients": "Client hashed new_key",
            "config": "GatewayConfig",
            "exchange.answer": "AnswerReader",
            "exchange.response": "COMMENT",
            "exchange.usage": "PromptSizes UsageRewriter rewritten_body",
            "http.server": "application config_from_environment serve",
            "operations.reports": "Report",
            "operations.services": "Services",
            "request": "FORMATS",
            "upstreams.connections": "UpstreamConnections UpstreamRequest",
            "upstreams.routing": "Upstream",
        },
    )
