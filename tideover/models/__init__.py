"""Stream processing on the kernel: topology, operators, groupings, windows, acker, strategies."""
