"""Conversations of chat apps, and our own exports: one module per program."""
