"""The agent: a loop of model calls and tools on the engine, small enough to read in an evening."""
