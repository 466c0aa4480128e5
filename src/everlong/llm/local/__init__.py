"""A small real model on this machine, for the first minute and for tests. It talks, streams and truly overflows.

It calls no tools and its words are nonsense: nothing about quality can be learned from it.
"""
