"""How many tokens a text, a message, a list of them takes: exact where a tokenizer exists, estimated where not."""
