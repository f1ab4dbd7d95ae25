"""What a scenario says: fabric, workloads, placement, service levels, power."""
