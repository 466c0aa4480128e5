"""What several steps do to texts. Pure."""
