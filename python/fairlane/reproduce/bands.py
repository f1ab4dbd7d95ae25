"""Numbers of clauses over replicates, as text."""

from collections.abc import Iterator
from math import isnan

from fairlane.reproduce.folder import BAND
from fairlane.reproduce.verdicts import ClaimVerdict, ClauseVerdict, Measured
from fairlane.wording import significant


def numbers(one: ClaimVerdict) -> Iterator[tuple[ClauseVerdict, Measured]]:
    """Every number of a claim, with its clause."""
    for clause in one.clauses:
        for number in clause.numbers:
            yield clause, number


def band_of(number: Measured, clause: ClauseVerdict) -> str:
    """The band in the first replicate, as text; with a tilde where it differs between replicates."""
    first, found = number.first, BAND.fullmatch(clause.clause.band)
    differs = len({(it.low, it.high) for it in number.findings.values()}) > 1
    about = "~" if differs else ""
    ends = ["–" if it is None or isnan(it) else significant(it) for it in (first.low, first.high)]
    if found is None or not found["operator"]:
        return f"{about}{ends[0]} to {ends[1]}"
    return f"{found['operator']} {about}{ends[0] if first.low is not None else ends[1]}"


def spread_of(number: Measured) -> str:
    """Median and range over replicates, as text."""
    if number.summary is None:
        return "–"
    middle, least, greatest = (significant(it) for it in number.summary)
    return middle if least == greatest else f"{middle} ({least} to {greatest})"
