"""OTF2 archives described by a process with limits, before anything of them is read in this one.

The OTF2 library is C code that trusts its files: on damaged ones it can loop, crash or allocate without end. An archive
that the other process has read from its first record to its last is then replayed in this one.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path

from fairlane.errors import BuildError, RunError

CPU_S, CPU_S_PER_MB = 10, 1.0
"""Processor time that reading may take, s, and how much more for each megabyte: it takes 0.05 s on a slow machine."""
WAITING = 4
"""So many times the processor time is how long it may take in all, on a machine that has other things to do."""
MEMORY, MEMORY_PER_BYTE = 1 << 30, 2
"""Address space that reading may take, and how much more for each byte of the archive: it does not grow with it."""


def is_otf2(trace: Path) -> bool:
    """Whether a trace, as it was unpacked, is for the OTF2 library."""
    return trace.suffix == ".otf2" or (trace.is_dir() and any(trace.glob("*.otf2")))


def describe_apart(trace: str, options: str, size: int) -> str:
    """The description of an OTF2 archive of ``size`` bytes. Raises ``RunError`` or ``BuildError`` if it has none."""
    cpu_s = int(CPU_S + CPU_S_PER_MB * size / 1e6)
    asked = {"trace": trace, "options": options, "cpu_s": cpu_s, "bytes": MEMORY + MEMORY_PER_BYTE * size}
    command = [sys.executable, "-P", "-m", "fairlane.otf2_child"]
    try:
        child = subprocess.run(
            command, input=json.dumps(asked).encode(), capture_output=True, check=False, timeout=WAITING * cpu_s
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"reading it takes more than {WAITING * cpu_s} s: it is damaged") from None
    if child.returncode:
        raise RunError(_death(child.returncode, cpu_s, asked["bytes"], child.stderr))
    answer = json.loads(child.stdout)
    if "description" in answer:
        return str(answer["description"])
    if answer["kind"] == "BuildError":
        raise BuildError(answer["error"])
    raise RunError(answer["error"])


def _death(code: int, cpu_s: int, most: object, output: bytes) -> str:
    """Why the process ended, in words."""
    if -code in (signal.SIGXCPU, signal.SIGKILL):
        return f"reading it takes more than {cpu_s} s of processor time: it is damaged"
    last = output.decode(errors="replace").strip().rpartition("\n")[2]
    words = f"signal {signal.Signals(-code).name}" if code < 0 else last or f"exit code {code}"
    return f"the OTF2 library fails on it within {int(str(most)) >> 20} MiB of memory ({words}): it is damaged"
