"""Everything that runs, and kills, real processes."""
