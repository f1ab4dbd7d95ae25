"""Runs of one condition with the same results, bit for bit: they are one replicate, whatever seeds and placements say.

Found by the digests of results, so it does not matter why they are the same.
"""

from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from fairlane.wording import listed, plural


def distinct(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The rows without those that repeat an earlier one in the columns ``by``: a condition and digests of results."""
    return rows.unique([*by], keep="first", maintain_order=True)


def sentence(
    repeats: int,
    count: int,
    varied: Sequence[str],
    *,
    what: str = "run",
    whats: str = "",
    whose: str = "",
    once: bool = True,
) -> str:
    """That so many of ``count`` runs repeat another, and what changes nothing, as seeds; ``once``: they count once."""
    verb = "repeats" if repeats == 1 else "repeat"
    words = f"{repeats} of {plural(count, what, whats)}{whose} {verb} another of the same condition, bit for bit"
    counted = f", and {'counts' if repeats == 1 else 'count'} once" if once else ""
    return f"{words}{counted}{f': {listed(varied)} change nothing there' if varied else ''}."


def by_name(sentences: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Sentences about what has these names; the same one of several once."""
    names: dict[str, list[str]] = {}
    for name, words in sentences:
        names.setdefault(words, []).append(name)
    yield from (f"{listed(of)}: {words}" for words, of in names.items())


def repeated(rows: pl.DataFrame, by: Sequence[str], varied: Sequence[str], what: str = "run") -> list[str]:
    """The sentence about all rows that repeat an earlier one, as ``distinct`` has it; nothing if there is none."""
    repeats = rows.height - distinct(rows, by).height
    return [sentence(repeats, rows.height, varied, what=what)] if repeats else []
