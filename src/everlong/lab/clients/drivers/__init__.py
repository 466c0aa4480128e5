"""One small program a client, run where that client is installed. Each prints one line of JSON: what it lived."""
