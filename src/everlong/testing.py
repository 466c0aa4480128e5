"""A scripted model and a scripted server for your tests. They answer from a script and refuse as real providers do.

They need no key and no network. Nothing in Everlong imports this module.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door

if TYPE_CHECKING:
    from everlong.llm import (
        Answer as Answer,
        Refusal as Refusal,
        ScriptedModel as ScriptedModel,
        ScriptedServer as ScriptedServer,
        Window as Window,
        echo as echo,
        in_turn as in_turn,
        reads_files as reads_files,
    )
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "everlong.llm": "Answer Refusal ScriptedModel ScriptedServer Window echo in_turn reads_files",
        },
    )
