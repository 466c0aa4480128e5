"""One request from a client to its upstream and back. Owns the answer; knows no routes and no server."""
