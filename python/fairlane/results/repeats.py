"""Runs of one condition with the same results, bit for bit: they are one replicate, whatever seeds and placements say.

Found by the digests of results, so it does not matter why they are the same.
"""

from collections.abc import Sequence

import polars as pl

from fairlane.wording import listed, plural


def distinct(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The rows without those that repeat an earlier one in the columns ``by``: a condition and digests of results."""
    return rows.unique([*by], keep="first", maintain_order=True)


def sentence(repeats: int, count: int, varied: Sequence[str], *, what: str = "run", whose: str = "") -> str:
    """That so many of ``count`` runs repeat another one, and what was varied, as seeds."""
    verb = "repeats" if repeats == 1 else "repeat"
    words = f"{repeats} of {plural(count, what)} {verb} another of the same condition, bit for bit, and count once"
    return f"{words}: {listed(varied)} change nothing there{whose}."


def repeated(rows: pl.DataFrame, by: Sequence[str], varied: Sequence[str], what: str = "run") -> list[str]:
    """The sentence about all rows that repeat an earlier one, as ``distinct`` has it; nothing if there is none."""
    repeats = rows.height - distinct(rows, by).height
    return [sentence(repeats, rows.height, varied, what=what)] if repeats else []
