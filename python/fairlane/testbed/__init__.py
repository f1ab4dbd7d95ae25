"""A testbed: a small real network on this machine, MPI jobs that run on it, and the simulator's prediction of both."""
