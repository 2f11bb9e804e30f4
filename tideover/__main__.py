"""``python -m tideover``: the command line."""

from tideover.cli import main

main()
