"""Decide whether a tool may act: actions and answers, patterns and their files, and what a person is shown."""
