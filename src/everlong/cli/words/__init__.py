"""What the command line says to people: one table a language, and one way to choose the language.

A new language is a table like `english` and a row in `wording.LANGUAGES`. Nothing here is read by a model.
"""
