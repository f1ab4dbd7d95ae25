"""What can be wrong with a run's folder or with a question about it."""

from fairlane.errors import FairlaneError


class ResultsError(FairlaneError, ValueError):
    """A run's folder that cannot be read or written, or a query that cannot be answered.

    The message names the file or query, what is wrong with it, and what is allowed or nearest.
    """
