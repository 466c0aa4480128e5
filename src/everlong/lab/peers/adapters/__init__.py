"""The adapters, one short file a library with the call that its documentation shows; each runs only beside it."""
