"""What every room needs: the simulator's boundary, the loop that drives it, and its tables."""
