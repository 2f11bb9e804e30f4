"""The command line: parses, calls, prints.

Exit codes: 0 done; 1 a run or an objective failed; 2 bad input; 130 interrupted.
"""

import sys


def main() -> None:
    """Run the command line, and end the process with its exit code."""
    try:
        from tideover.cli.app import main as run  # takes a moment, in which somebody may press Ctrl-C
    except KeyboardInterrupt:
        sys.exit(130)
    run()
