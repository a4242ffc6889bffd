"""``python -m simplexplore``: the command line without its script."""

from simplexplore.cli.app import main

# Processes that the service starts import this file, too.
if __name__ == "__main__":
    main()
