"""From what was observed to the figures of a run: recoveries, and what would have been without failures."""
