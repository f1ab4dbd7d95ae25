"""How allocations and neighbours slow jobs down: a model fitted to packet-level simulations of the jobs' patterns."""
