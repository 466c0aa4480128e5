"""One module per framework: it does its job with our adapter, with the framework's own compaction, or with nothing."""
