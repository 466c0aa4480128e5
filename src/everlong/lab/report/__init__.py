"""The lab's findings as HTML pages: one file each, with inline pictures, no script, light and dark.

The words are in `words/`, one table per language. Nothing is measured here.
"""
