"""Runs in progress for tests: in a process of their own, long enough to be looked at."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["LONG", "SHORT", "running"]

LONG = """
name = "long"
duration = "1000 s"
[fabric]
topology = "fat_tree"
hosts = 16
levels = 2
radix = 8
bandwidth = "3.2 GB/s"
[placement]
name = "random"
[[jobs]]
name = "pairs"
count = 2
ranks = 4
workload = { name = "flood_pairs", message_size = "4 KiB", compute = "10 us" }
[[jobs]]
name = "<total>"
ranks = 8
workload = { name = "all_to_all", message_size = "4 KiB", compute = "10 us" }
"""
SHORT = LONG.replace('"1000 s"', '"4 ms"')


@contextmanager
def running(folder: Path, text: str = LONG) -> Iterator[subprocess.Popen[bytes]]:
    """``fairlane run`` into a folder, in another process; it is ended if it still runs."""
    file = folder.with_suffix(".toml")
    file.write_text(text)
    command = [sys.executable, "-m", "fairlane", "run", str(file), "--out", str(folder), "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
