"""``python -m tideover.cli``."""

from tideover.cli import main

main()
