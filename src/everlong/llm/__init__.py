"""Model clients: a model over HTTP in every wire format, the refresh of the model registry, a scripted and a local model.

What a request or a reply looks like is said by the formats of `everlong.wire`; this room only moves bytes.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.llm.client import (
        Connections as Connections,
        HttpModel as HttpModel,
        Patience as Patience,
        read_whole as read_whole,
    )
    from everlong.llm.endpoints import (
        KNOWN as KNOWN,
        Endpoint as Endpoint,
        endpoint_at as endpoint_at,
        endpoint_from_environment as endpoint_from_environment,
    )
    from everlong.llm.local.model_files import cache_folder as cache_folder, model_file as model_file
    from everlong.llm.local.server import LocalServer as LocalServer
    from everlong.llm.registry_refresh import (
        LastTry as LastTry,
        Refreshed as Refreshed,
        RefreshSettings as RefreshSettings,
        last_try as last_try,
        refresh as refresh,
        refresh_if_due as refresh_if_due,
        registry_now as registry_now,
        write_registry as write_registry,
        write_try as write_try,
    )
    from everlong.llm.scripted.hostile import (
        HOSTILE as HOSTILE,
        MALFORMED as MALFORMED,
        OVERFLOWS as OVERFLOWS,
        TOO_LONG as TOO_LONG,
        breaks_at as breaks_at,
        reports as reports,
        window_body as window_body,
    )
    from everlong.llm.scripted.model import OVERFLOW as OVERFLOW, ScriptedModel as ScriptedModel, Window as Window
    from everlong.llm.scripted.script import (
        Answer as Answer,
        Broken as Broken,
        Raw as Raw,
        ReceivedRequest as ReceivedRequest,
        Refusal as Refusal,
        Script as Script,
        Step as Step,
        echo as echo,
        in_turn as in_turn,
        reads_files as reads_files,
        reply_of as reply_of,
    )
    from everlong.llm.scripted.server import ScriptedServer as ScriptedServer
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "client": "Connections HttpModel Patience read_whole",
            "endpoints": "Endpoint KNOWN endpoint_at endpoint_from_environment",
            "local.model_files": "cache_folder model_file",
            "local.server": "LocalServer",
            "registry_refresh": "LastTry RefreshSettings Refreshed last_try refresh refresh_if_due registry_now write_registry "
            "write_try",
            "scripted.hostile": "HOSTILE MALFORMED OVERFLOWS TOO_LONG breaks_at reports window_body",
            "scripted.model": "OVERFLOW ScriptedModel Window",
            "scripted.script": "Answer ReceivedRequest Broken Raw Refusal Script Step echo in_turn reads_files reply_of",
            "scripted.server": "ScriptedServer",
        },
    )
