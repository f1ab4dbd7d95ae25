"""The largest memory of a Python process of its own."""

import subprocess
import sys

__all__ = ["measured"]

_AFTER = """
import pathlib, resource, sys
status = pathlib.Path("/proc/self/status")
if status.exists():  # what getrusage says of a new process on Linux is at least what its parent had
    kib = int(status.read_text().partition("VmHWM:")[2].split()[0])
else:
    kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
print(kib * 1024)
"""


def measured(code: str, *arguments: object) -> tuple[list[str], int]:
    """Runs ``code`` with these arguments; the lines that it printed, and its largest resident memory in bytes."""
    command = [sys.executable, "-c", code + _AFTER, *map(str, arguments)]
    *lines, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return lines, int(peak)
