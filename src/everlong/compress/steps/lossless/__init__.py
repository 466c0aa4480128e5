"""Steps that lose nothing: they remove duplicates, outdated copies and redundant notation."""
