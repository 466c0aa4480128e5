"""Threads: where conversations are kept. One contract (`engine.threads`), an engine a module."""
