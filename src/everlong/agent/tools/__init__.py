"""The agent's own tools, one subject a file. `standard` puts them together; nothing is imported here."""
