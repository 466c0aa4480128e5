"""The steps of a compaction: one function a file, pure, independent of each other."""
