"""The command line: the program `everlong`, a thin layer over the library.

`main` has the table of commands, `commands` has one file per command, and the other packages do the work. Everything
that people read comes from `words`, which has one table per language. Nothing below imports this package, and nothing
here decides what is sent to a model: the engine does.
"""
