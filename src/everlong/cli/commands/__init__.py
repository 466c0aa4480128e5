"""One file per command of `everlong`: its options, its help, and the call of the code that does the work."""
