"""Service level objectives: what a run is asked for (``recovery_p95 <= 20 s``), and whether it holds."""
