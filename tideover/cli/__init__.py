"""The command line: parses, calls, prints.

Exit codes: 0 done; 1 a run or an objective failed; 2 bad input; 130 interrupted.
"""

from tideover.cli.app import main

__all__ = ["main"]
