"""What every command shares: console and tables, safe text, output streams, input and output files."""
