"""What strategies are composed of: acks, buffers, checkpoints, barriers, batches. They know no strategy."""
