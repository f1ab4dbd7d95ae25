"""Findings in words: a number beside its band."""

from fairlane.reproduce.frames.paper import Finding

__all__ = ["above", "within"]


def within(words: str, value: float, low: float = float("-inf"), high: float = float("inf")) -> Finding:
    """A number and the band that it is to be in."""
    band = f"in [{low:g}, {high:g}]" if low > -1e9 and high < 1e9 else f">= {low:g}" if low > -1e9 else f"<= {high:g}"
    return f"{words} {value:+.3f} ({band})", low <= value <= high


def above(words: str, value: float, bound: float) -> Finding:
    """A number and what it is to exceed."""
    return f"{words} {value:+.3f} (> {bound:+.3f})", value > bound
