"""The chat app: its API and its page, over the same engine and store as everything else."""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.web.app import web_routes as web_routes
    from everlong.web.building import build as build, node_folder as node_folder
    from everlong.web.choices import Choices as Choices, with_choices as with_choices
    from everlong.web.desk import OWNER as OWNER, Desk as Desk, Setup as Setup
    from everlong.web.guarding import Guard as Guard
    from everlong.web.sources import (
        Source as Source,
        environment_sources as environment_sources,
        sources_file as sources_file,
    )
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "app": "web_routes",
            "building": "build node_folder",
            "choices": "Choices with_choices",
            "desk": "Desk OWNER Setup",
            "guarding": "Guard",
            "sources": "Source environment_sources sources_file",
        },
    )
