"""What is reported of a run."""
