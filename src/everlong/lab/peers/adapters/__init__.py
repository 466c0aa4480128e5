"""The adapters, one short file per library with the call from its documentation; each runs only next to its library."""
