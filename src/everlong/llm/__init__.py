"""Model clients: a model over HTTP in every wire format, a scripted model, a local model, and registry updates.

The formats in `everlong.wire` define what requests and replies look like; this package only moves bytes.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.folders import cache_folder as cache_folder
    from everlong.llm.arrivals import (
        ArrivalLimits as ArrivalLimits,
        GuardedHttp as GuardedHttp,
        raise_file_limit as raise_file_limit,
    )
    from everlong.llm.bodies import (
        PACKED as PACKED,
        UnreadableBody as UnreadableBody,
        encoding_of as encoding_of,
        pieces_of as pieces_of,
        read_whole as read_whole,
    )
    from everlong.llm.client import (
        Connections as Connections,
        HttpModel as HttpModel,
        Patience as Patience,
    )
    from everlong.llm.endpoints import (
        KNOWN as KNOWN,
        USUAL_MODELS as USUAL_MODELS,
        Endpoint as Endpoint,
        Way as Way,
        endpoint_at as endpoint_at,
        endpoint_from_environment as endpoint_from_environment,
    )
    from everlong.llm.local.download import Fetch as Fetch
    from everlong.llm.local.model_files import local_file as local_file, model_file as model_file
    from everlong.llm.local.server import LocalServer as LocalServer
    from everlong.llm.registry_files import last_try as last_try, registry_now as registry_now
    from everlong.llm.registry_refresh import (
        RefreshSettings as RefreshSettings,
        refresh as refresh,
        refresh_if_due as refresh_if_due,
    )
    from everlong.llm.scripted.hostile import reports as reports
    from everlong.llm.scripted.model import OVERFLOW as OVERFLOW, ScriptedModel as ScriptedModel, Window as Window
    from everlong.llm.scripted.ollama import ScriptedOllama as ScriptedOllama
    from everlong.llm.scripted.script import (
        Answer as Answer,
        ReceivedRequest as ReceivedRequest,
        Refusal as Refusal,
        Step as Step,
        echo as echo,
        in_turn as in_turn,
        reads_files as reads_files,
    )
    from everlong.llm.scripted.server import ScriptedServer as ScriptedServer
    from everlong.llm.sites import guarded_site as guarded_site
    from everlong.llm.witness.server import WITNESS as WITNESS, WitnessServer as WitnessServer
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "arrivals": "ArrivalLimits GuardedHttp raise_file_limit",
            "bodies": "PACKED UnreadableBody encoding_of pieces_of read_whole",
            "client": "Connections HttpModel Patience",
            "everlong.folders": "cache_folder",
            "endpoints": "Endpoint KNOWN USUAL_MODELS Way endpoint_at endpoint_from_environment",
            "local.download": "Fetch",
            "local.model_files": "local_file model_file",
            "local.server": "LocalServer",
            "registry_files": "last_try registry_now",
            "registry_refresh": "RefreshSettings refresh refresh_if_due",
            "scripted.hostile": "reports",
            "scripted.model": "OVERFLOW ScriptedModel Window",
            "scripted.ollama": "ScriptedOllama",
            "scripted.script": "Answer ReceivedRequest Refusal Step echo in_turn reads_files",
            "scripted.server": "ScriptedServer",
            "sites": "guarded_site",
            "witness.server": "WITNESS WitnessServer",
        },
    )
