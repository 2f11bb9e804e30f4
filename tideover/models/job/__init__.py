"""What runs: components, how they are connected, and where their tasks are."""
