"""One command of `everlong` a file: its options, its help, and the call that does the work. The rooms do the work."""
