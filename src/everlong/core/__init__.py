"""Values and laws of a conversation. Standard library only: no clock, no randomness, no I/O."""
