"""Pure steps that bring a history under a size, each reporting what it changed."""
