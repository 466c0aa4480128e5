"""Keeps a conversation with a language model going for ever."""

__version__ = "0.1.0"
