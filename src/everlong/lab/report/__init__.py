"""The lab's findings as HTML pages: one file each, with pictures of its own, no script, light and dark.

The words stand in `words/`, one table a language. Nothing is measured here.
"""
