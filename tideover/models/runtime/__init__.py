"""How a job runs: tasks, channels, faults; what happens is announced, and strategies act by verbs."""
