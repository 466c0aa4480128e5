"""The gateway: any OpenAI or Anthropic client, one changed base URL."""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.gateway.clients import hashed as hashed
    from everlong.gateway.config import GatewayConfig as GatewayConfig
    from everlong.gateway.dialects import DIALECTS as DIALECTS
    from everlong.gateway.forwarding import Forwarding as Forwarding, Sent as Sent
    from everlong.gateway.listening import Listening as Listening
    from everlong.gateway.opaque import (
        opaque_parts as opaque_parts,
        restored as restored,
        restored_items as restored_items,
    )
    from everlong.gateway.outlet import COMMENT as COMMENT
    from everlong.gateway.parties import Client as Client, Upstream as Upstream
    from everlong.gateway.recall_tool import rendered as rendered
    from everlong.gateway.reports import Report as Report
    from everlong.gateway.services import Services as Services
    from everlong.gateway.serving import application as application, config_told as config_told, serve as serve
    from everlong.gateway.usage_figures import (
        Figures as Figures,
        Rewriting as Rewriting,
        rewritten_body as rewritten_body,
    )
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "clients": "hashed",
            "config": "GatewayConfig",
            "dialects": "DIALECTS",
            "forwarding": "Forwarding Sent",
            "listening": "Listening",
            "opaque": "opaque_parts restored restored_items",
            "outlet": "COMMENT",
            "parties": "Client Upstream",
            "recall_tool": "rendered",
            "reports": "Report",
            "services": "Services",
            "serving": "application config_told serve",
            "usage_figures": "Figures Rewriting rewritten_body",
        },
    )
