"""Conversations that providers store for their clients, reconstructed from the answers that pass through."""
