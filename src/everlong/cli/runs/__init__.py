"""The code of commands, loaded when one runs. `everlong.cli.commands` has their options and loads little."""
