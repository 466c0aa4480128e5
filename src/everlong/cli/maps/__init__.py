"""The token map of a conversation for `everlong inspect`: on a terminal, as a page, as JSON."""
