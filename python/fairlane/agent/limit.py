"""The limit of changes: at most so many within any minute, also over restarts, as it goes by the journal."""

from collections.abc import Sequence

WINDOW_S = 60.0


def wait_s(written: Sequence[float], now: float, most: int) -> float:
    """How long the next change has to wait, s.

    ``written`` has the instants of earlier changes in order, ``now`` the present one, both in s since 1970. Changes
    that seem to be in the future, after a clock was set back, count as if they were now.
    """
    recent = [min(at, now) for at in written if at > now - WINDOW_S]
    return max(0.0, recent[-most] + WINDOW_S - now) if len(recent) >= most else 0.0
