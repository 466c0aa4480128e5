"""Steps that shorten in place: long texts, results, arguments, images, reasoning. Only empty messages go."""
