"""Smith et al. 2018, Analyzing inter-job contention in dragonfly networks."""
