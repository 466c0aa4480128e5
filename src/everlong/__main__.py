"""`python -m everlong` is the same program as `everlong`."""

from everlong.cli.main import main

if __name__ == "__main__":
    main()
