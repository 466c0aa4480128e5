"""The chat app: a page in the browser and the HTTP API below it, over the same engine and store as everything else.

`AppState` is the running app, `web_routes` its routes for any server. Requests come in through `api`, what happens
meanwhile goes out through `live`, what the app knows is in `state`. It never changes a conversation itself: the engine
and the agent do.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.web.api.guard import Guard as Guard, is_loopback as is_loopback
    from everlong.web.api.routes import web_routes as web_routes
    from everlong.web.app import EVERYBODY as EVERYBODY, AppState as AppState, Setup as Setup
    from everlong.web.build import BUILT as BUILT, build_page as build_page, node_folder as node_folder
    from everlong.web.state.settings import OWNER as OWNER, Choices as Choices, with_choices as with_choices
    from everlong.web.state.sources import (
        Source as Source,
        environment_sources as environment_sources,
        sources_file as sources_file,
    )
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "api.guard": "Guard is_loopback",
            "api.routes": "web_routes",
            "app": "AppState EVERYBODY Setup",
            "build": "BUILT build_page node_folder",
            "state.settings": "Choices OWNER with_choices",
            "state.sources": "Source environment_sources sources_file",
        },
    )
