"""Settings that lose the least time: how far apart checkpoints are, how patient a detector is."""
