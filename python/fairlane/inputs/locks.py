"""Locks on files that the kernel releases when the process ends in whatever way.

To ask whether a file is locked takes no lock, so no reader is ever in the way of the process that wants it.
"""

import fcntl
import os
import struct

_FLOCK = struct.Struct("hhqqi0q")  # struct flock of Linux: type, whence, start, length (0 is all), process; padding


def take(file: int) -> bool:
    """Lock an open file for this process alone; return whether it is locked now.

    Raises ``OSError`` on file systems without locks.
    """
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except (BlockingIOError, PermissionError):  # POSIX allows both for a file that another process has locked
        return False
    return True


def is_taken(file: int) -> bool:
    """Return whether an open file is locked by another opening of it, in this process or another."""
    answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)
