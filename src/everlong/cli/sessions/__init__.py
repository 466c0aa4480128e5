"""`everlong sessions`: the commands that list, show, search, change, import and export stored conversations."""
