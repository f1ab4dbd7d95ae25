"""What the process's exit status says."""

from enum import IntEnum

__all__ = ["ExitCode"]


class ExitCode(IntEnum):
    """How a command ended."""

    DONE = 0
    RUN_FAILED = 1
    WRONG_INPUT = 2
    DISK_FULL = 3
    INTERRUPTED = 130
