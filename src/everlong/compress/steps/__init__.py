"""The steps of a compaction: one function per file, pure, independent of each other."""
