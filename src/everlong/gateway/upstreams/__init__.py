"""The servers that answer: which one a model goes to, and the connections to them."""
