"""Patki et al. 2016: interference, rails, service levels, power caps and placements on Catalyst."""
