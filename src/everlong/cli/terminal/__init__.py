"""What every command shares: console and tables, harmless text, output streams, input and output files."""
