"""Files that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside ``path`` to write to, which takes its place at the end: after an error all is as it was.

    What is there and is no plain file, as a pipe or ``/dev/stdout``, is written to as it is.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve()
    scratch = target.with_name(f".{os.getpid()}-{target.name}")
    try:
        yield scratch
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)
