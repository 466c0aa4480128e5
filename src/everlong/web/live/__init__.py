"""What happens while the server runs: turns, compactions, approvals, and the event streams that show them to pages."""
