"""What a user of each peer would write, one module a peer; each runs in that peer's own environment."""
