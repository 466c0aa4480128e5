"""Recall what left the window.

`request` recalls on request, by reference or by search. `block` recalls automatically, for a question or a step that
needs it.
"""
