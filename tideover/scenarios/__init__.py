"""What to simulate: scenario files and their schema, the built-in library, grids, sweeps as Spark jobs."""
