"""The Spark session of a sweep: embedded in this process, on a cluster, or at a Spark Connect server."""
