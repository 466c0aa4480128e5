"""`everlong chat`: the agent at a terminal, for one message, or for a program that reads lines of JSON."""
