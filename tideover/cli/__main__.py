"""``python -m tideover.cli``."""

from tideover.cli.app import main

main()
