"""Programs that the agent calls: squeue, tc, and those that read back what is in force."""

import subprocess
from collections.abc import Sequence

from fairlane.errors import FairlaneError

_MOST_SHOWN = 300  # characters of a program's error message


def call(command: Sequence[str], timeout_s: float, error: type[FairlaneError], given: str | None = None) -> str:
    """What a program prints to standard output; ``given`` is its standard input.

    Raises ``error`` with the command and the reason if it cannot be started, takes longer, or ends with a code other
    than 0.
    """
    shown = " ".join(command)
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise error(f"{shown}: no answer within {timeout_s:g} s") from None
    except (OSError, ValueError) as reason:  # a ValueError is a NUL in a word
        raise error(f"{shown}: cannot be started: {getattr(reason, 'strerror', None) or reason}") from None
    if done.returncode:
        words = (done.stderr.strip() or done.stdout.strip() or "no message")[:_MOST_SHOWN]
        raise error(f"{shown}: ended with code {done.returncode}: {words}")
    return done.stdout
