"""Run times of timesteps from network counters: models, how far they are off on runs never seen, and when to doubt them."""
