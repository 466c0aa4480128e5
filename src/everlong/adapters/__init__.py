"""Everlong inside other frameworks, one module each: three lines in a program that is there already.

A module is imported by its own name, such as `everlong.adapters.langchain`, and needs its framework. What it does is
small: it hands the framework's own messages to the engine before each call of a model, and gives back what to send. The
engine decides everything; `keeper` is the part of that which all adapters share.
"""
