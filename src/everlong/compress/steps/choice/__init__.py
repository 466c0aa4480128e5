"""Steps that choose which messages stay."""
