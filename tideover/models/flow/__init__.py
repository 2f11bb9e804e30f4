"""Jobs whose data the compiled data plane moves (`tideover.sim.plane`)."""
