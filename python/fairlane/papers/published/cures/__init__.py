"""Cures of interference between jobs, compared on the same runs: controllers, routing, placement, memory."""
