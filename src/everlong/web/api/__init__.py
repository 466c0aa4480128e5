"""The HTTP API and the page's files: routes, handlers by subject, and the guard. It has no state."""
