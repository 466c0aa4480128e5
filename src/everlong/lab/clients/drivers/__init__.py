"""The drivers: one small program a client, run where that client is installed. Each prints its report as JSON."""
