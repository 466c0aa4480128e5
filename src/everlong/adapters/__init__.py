"""Everlong inside other frameworks: one module per framework, three lines in an existing program.

Import a module by its name, such as `everlong.adapters.langchain`; it needs its framework. Before each model call an
adapter passes the framework's own messages to the engine and sends what the engine returns. The engine makes every
decision; `keeper` is the code that all adapters share.
"""
