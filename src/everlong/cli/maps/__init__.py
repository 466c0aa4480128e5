"""The token map of a conversation as people see it: on the terminal, as a page, as JSON."""
