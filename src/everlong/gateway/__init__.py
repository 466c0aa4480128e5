"""The gateway: any OpenAI or Anthropic client, one changed base URL.

It identifies clients, routes their requests to upstreams, lets the engine keep conversations within the window, and
forwards answers. What is special to a format is in the format's folder of `everlong.wire`; nothing here asks which
one it is.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.gateway.clients import Client as Client, hashed as hashed, new_key as new_key
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
    from everlong.gateway.operations.reports import Report as Report
    from everlong.gateway.operations.services import Services as Services
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "clients": "Client hashed new_key",
            "config": "GatewayConfig is_loopback settings_here",
            "http.boundary": "Boundary",
            "http.server": "application config_from_environment serve",
            "operations.reports": "Report",
            "operations.services": "Services",
        },
    )
