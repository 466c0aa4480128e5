"""Conversations that providers hold for their clients, known here by the answers that were seen."""
