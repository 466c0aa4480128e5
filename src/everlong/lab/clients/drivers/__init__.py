"""The drivers: one small program per client, run where that client is installed. Each prints its report as JSON."""
