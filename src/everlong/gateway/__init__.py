"""The gateway: a proxy for any OpenAI, Anthropic, Gemini or Ollama client that only needs another base URL.

It identifies clients, routes their requests to upstreams, lets the engine keep conversations within the context window,
and forwards the answers. Everything specific to a wire format is in that format's folder in `everlong.wire`.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.gateway.clients import Client as Client
    from everlong.gateway.config import (
        GatewayConfig as GatewayConfig,
        is_loopback as is_loopback,
        settings_here as settings_here,
    )
    from everlong.gateway.http.boundary import Boundary as Boundary
    from everlong.gateway.http.server import (
        application as application,
        config_from_environment as config_from_environment,
        serve as serve,
    )
    from everlong.gateway.http.worker import JobDesk as JobDesk, work as work
    from everlong.gateway.keys.overview import (
        shown_key as shown_key,
        shown_keys as shown_keys,
        shown_spend as shown_spend,
    )
    from everlong.gateway.keys.records import KeyRecords as KeyRecords, hashed as hashed, new_key as new_key
    from everlong.gateway.keys.spend import Ledger as Ledger
    from everlong.gateway.operations.reports import Report as Report
    from everlong.gateway.operations.services import Services as Services
    from everlong.gateway.upstreams.providers import expect_upstream as expect_upstream
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "clients": "Client",
            "config": "GatewayConfig is_loopback settings_here",
            "http.boundary": "Boundary",
            "http.server": "application config_from_environment serve",
            "keys.overview": "shown_key shown_keys shown_spend",
            "keys.records": "KeyRecords hashed new_key",
            "keys.spend": "Ledger",
            "http.worker": "JobDesk work",
            "operations.reports": "Report",
            "operations.services": "Services",
            "upstreams.providers": "expect_upstream",
        },
    )
