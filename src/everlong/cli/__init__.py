"""The command line: the program `everlong`, a thin layer over the library.

`main` has the table of commands, `commands` one command a file; the other rooms do their work. Everything that people
read comes from `words`, one table a language. Nothing below imports this package, and nothing here decides what is
sent to a model: the engine does.
"""
