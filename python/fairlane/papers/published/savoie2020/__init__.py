"""Savoie et al. 2020, Mitigating Inter-Job Interference via Process-Level Quality-of-Service."""
