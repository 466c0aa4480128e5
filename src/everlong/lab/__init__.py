"""What survives: strategies measured on real conversations, without a judge."""
