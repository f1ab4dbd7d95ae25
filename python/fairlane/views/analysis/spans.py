"""What the stretches of an analysis are called, and the colours of what a rank's time is spent on."""

from fairlane.analysis import LATE, SLOW, Analysis, Span

NETWORK, OWN_WORK = "network", "computing"
REASONS = (LATE, NETWORK, OWN_WORK, "other MPI", "communication")
"""What time is spent on, in the order of its colours."""
DELAYS = (LATE, SLOW)
"""Kinds of delay, in the order of their colours: slow communication has that of the network."""


def which(span: Span) -> str:
    """The iteration, or what else it is, and the round of it."""
    what = span.name if span.iteration is None else f"iteration {span.iteration}"
    return what if span.round is None else f"{what}, round {span.round}"


def stretch(found: Analysis) -> str:
    """The stretch that was looked at."""
    span = found.chosen.span
    return which(span) if span.iteration is None else f"{which(span)} ({span.name})"
