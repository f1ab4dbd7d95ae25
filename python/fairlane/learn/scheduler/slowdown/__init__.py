"""Slowdowns by allocations and neighbours: a model fitted to packet-level simulations of the jobs' patterns."""
