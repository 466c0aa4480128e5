"""The agent: a loop of model calls and tools on top of the engine.

It runs turns, makes tool calls and guards the workspace. It decides nothing about the context window: every request
goes through the engine. It displays nothing: the terminal and the app read its events.
"""

from typing import TYPE_CHECKING

from everlong.doors import open_door
from everlong.extras import expect_posix

expect_posix("the agent")  # only POSIX systems have what guards the workspace

if TYPE_CHECKING:
    from everlong.agent.agent import Agent as Agent, Kind as Kind
    from everlong.agent.changes import Change as Change, Changes as Changes
    from everlong.agent.config import (
        DEFAULT_CONFIG as DEFAULT_CONFIG,
        AgentConfig as AgentConfig,
        at_home as at_home,
        folder_config as folder_config,
    )
    from everlong.agent.definitions import Outcome as Outcome, Tool as Tool, tool as tool
    from everlong.agent.events import (
        AgentEvent as AgentEvent,
        CallEnded as CallEnded,
        CallRefused as CallRefused,
        CallStarted as CallStarted,
        Entered as Entered,
        TurnEnded as TurnEnded,
    )
    from everlong.agent.mcp_servers import McpServers as McpServers
    from everlong.agent.permissions.action import Action as Action, Answer as Answer, Approve as Approve
    from everlong.agent.permissions.permissions import Permissions as Permissions
    from everlong.agent.standing_context import (
        NO_STANDING_CONTEXT as NO_STANDING_CONTEXT,
        StandingContext as StandingContext,
    )
    from everlong.agent.tools.diffs import unified_diff as unified_diff
    from everlong.agent.tools.recall import recall_tool as recall_tool
    from everlong.agent.tools.sandbox import Sandbox as Sandbox
    from everlong.agent.tools.web import (
        Resolve as Resolve,
        is_public as is_public,
        resolve_by_system as resolve_by_system,
    )
    from everlong.agent.toolset import (
        OWN_TOOLS as OWN_TOOLS,
        sandbox_of as sandbox_of,
        standard_tools as standard_tools,
        workspace_agent as workspace_agent,
    )
    from everlong.agent.workspace import read_named as read_named
else:
    __all__, __getattr__, __dir__ = open_door(
        __name__,
        {
            "agent": "Agent Kind",
            "changes": "Change Changes",
            "config": "AgentConfig DEFAULT_CONFIG at_home folder_config",
            "definitions": "Outcome Tool tool",
            "events": "AgentEvent CallEnded CallRefused CallStarted Entered TurnEnded",
            "mcp_servers": "McpServers",
            "permissions.action": "Action Answer Approve",
            "permissions.permissions": "Permissions",
            "standing_context": "NO_STANDING_CONTEXT StandingContext",
            "tools.recall": "recall_tool",
            "tools.diffs": "unified_diff",
            "tools.sandbox": "Sandbox",
            "tools.web": "Resolve is_public resolve_by_system",
            "toolset": "OWN_TOOLS sandbox_of standard_tools workspace_agent",
            "workspace": "read_named",
        },
    )
