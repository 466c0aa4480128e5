"""The chat app: a page in the browser and the HTTP API below it, over the same engine and store as everything else.

`AppState` is the running app, `web_routes` its routes for any server. Requests come in through `api`, live updates go
out through `live`, and `state` holds what the app knows. The app never changes a conversation itself: the engine and
the agent do.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.web.api.guard import Guard as Guard, ProxyUsers as ProxyUsers, is_loopback as is_loopback
    from everlong.web.api.routes import web_routes as web_routes
    from everlong.web.app import EVERYBODY as EVERYBODY, AppState as AppState, Setup as Setup
    from everlong.web.apps import Apps as Apps
    from everlong.web.build import BUILT as BUILT, build_page as build_page, node_folder as node_folder
    from everlong.web.live.site import Site as Site
    from everlong.web.state.settings import (
        OWNER as OWNER,
        Choices as Choices,
        sample_language as sample_language,
        sample_metadata as sample_metadata,
        with_choices as with_choices,
    )
    from everlong.web.state.sources import (
        Source as Source,
        environment_sources as environment_sources,
        sources_file as sources_file,
    )
    from everlong.web.users.accounts import Logins as Logins
    from everlong.web.users.members import MemberThreads as MemberThreads
    from everlong.web.users.openid import OpenId as OpenId, OpenIdProvider as OpenIdProvider
    from everlong.web.users.vault import Vault as Vault
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "api.guard": "Guard ProxyUsers is_loopback",
            "api.routes": "web_routes",
            "app": "AppState EVERYBODY Setup",
            "apps": "Apps",
            "build": "BUILT build_page node_folder",
            "live.site": "Site",
            "state.settings": "Choices OWNER sample_language sample_metadata with_choices",
            "state.sources": "Source environment_sources sources_file",
            "users.accounts": "Logins",
            "users.members": "MemberThreads",
            "users.openid": "OpenId OpenIdProvider",
            "users.vault": "Vault",
        },
    )
