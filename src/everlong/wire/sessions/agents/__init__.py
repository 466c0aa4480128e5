"""Session files of agents that call tools: one module per program, and shared code for event logs."""
