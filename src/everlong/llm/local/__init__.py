"""A small real model on this machine, for first steps and for tests. It answers, streams and truly overflows.

It calls no tools and its words are nonsense: nothing about quality can be learned from it.
"""
