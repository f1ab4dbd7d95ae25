"""Scenarios that several tests need: as the text of a file, and as a table."""

from typing import Any

__all__ = ["PAIRS", "TREE"]

PAIRS = """
duration = "200 us"
[fabric]
topology = "fat_tree"
hosts = 16
levels = 2
radix = 8
bandwidth = "3.2 GB/s"
[[jobs]]
name = "pairs"
count = 2
ranks = 4
workload = { name = "flood_pairs", compute = "10 us" }
"""
"""Two small jobs that take no time."""
TREE: dict[str, Any] = {"topology": "fat_tree", "hosts": 16, "levels": 2, "radix": 8, "bandwidth": "3.2 GB/s"}
"""The fabric of ``PAIRS``."""
