"""``python -m simplexplore``: the command line without its script."""

from simplexplore.cli.app import main

main()
