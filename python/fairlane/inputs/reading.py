"""Files of unknown origin in memory, up to a stated size: a device or a file without end cannot fill it."""

import errno
from pathlib import Path

from fairlane.wording import data_size

MOST_TEXT = 16 << 20
"""Bytes of a file that people write, as a scenario."""
MOST_STORED = 256 << 20
"""Bytes of a file that programs write, as a fitted model."""


def read_bytes(path: Path, most: int = MOST_TEXT) -> bytes:
    """The content of a file. Raises ``OSError``, in words also where it has more than ``most`` bytes."""
    with path.open("rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise OSError(errno.EINVAL, f"it has more than {data_size(most)}", str(path))
    return found


def read_text(path: Path, most: int = MOST_TEXT, encoding: str = "utf-8") -> str:
    """As ``read_bytes``, for text with any kind of line ends. Raises ``UnicodeDecodeError``, too."""
    return read_bytes(path, most).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
