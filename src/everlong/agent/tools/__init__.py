"""The agent's own tools, one subject a file. The table of them is `everlong.agent.toolset`; nothing is imported here."""
