"""What can be wrong with a run's folder or with a question about it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairlane.errors import FairlaneError


class ResultsError(FairlaneError, ValueError):
    """A run's folder that cannot be read or written, or a query that cannot be answered.

    The message names the file or query, what is wrong with it, and what is allowed or nearest.
    """


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What goes wrong with a file's disk or folder is a ``ResultsError`` that names it."""
    from polars.exceptions import PolarsError

    try:
        yield
    except (OSError, PolarsError) as error:
        words = getattr(error, "strerror", None) or error
        raise ResultsError(f"{path}: cannot be written: {words}") from error
