"""One request from a client to its upstream and back. Owns the answer; does not know routes and servers."""
