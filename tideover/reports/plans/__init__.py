"""What a plan found, for readers."""
