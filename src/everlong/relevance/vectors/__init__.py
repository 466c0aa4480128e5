"""Vectors of texts from local models: they show which texts mean similar things, even without a common word.

Needs the extra `semantic`. The weights are the user's own files; nothing is downloaded.
"""
