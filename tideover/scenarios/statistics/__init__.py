"""Statistics of replications: means, quantiles, pairs, long runs, warm-up, rare failures."""
