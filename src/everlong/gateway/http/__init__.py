"""The HTTP server: its application, its endpoints and the process that runs them. Decides nothing about a request."""
