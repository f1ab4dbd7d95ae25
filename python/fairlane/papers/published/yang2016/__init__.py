"""Yang et al. 2016, Study of intra- and inter-job interference on torus networks."""
