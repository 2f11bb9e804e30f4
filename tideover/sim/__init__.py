"""The kernel: time, servers, hosts, links, stores, faults, recording. Knows no strategy and no topology."""
