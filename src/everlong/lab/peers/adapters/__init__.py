"""One short file a peer, with the call that its documentation shows; each imports only in that peer's environment."""
