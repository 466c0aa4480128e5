"""What commands do, loaded when one runs. What a command takes stands in `everlong.cli.commands`, which loads little."""
