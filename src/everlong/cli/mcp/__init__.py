"""`everlong mcp`: the user's own sessions, of every program, as tools and resources for any MCP client."""
