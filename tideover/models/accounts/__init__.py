"""What is observed: they listen to a run, and change nothing."""
