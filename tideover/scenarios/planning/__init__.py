"""Plans: the cheapest configuration of a scenario that meets its objectives."""
