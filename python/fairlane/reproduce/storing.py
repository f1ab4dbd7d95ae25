"""What a page of a reproduction needs besides its tables: the claims with their numbers."""

from collections.abc import Sequence
from importlib.metadata import version
from math import isnan
from typing import Any

from fairlane.reproduce.bands import band_of
from fairlane.reproduce.folder import PaperTable
from fairlane.reproduce.verdicts import ClaimVerdict, ClauseVerdict, Measured
from fairlane.results.reproduction import ClaimResult, ClauseResult, Number, ReproductionMeta
from fairlane.tasks.sources import sources


def meta_of(
    name: str, paper: PaperTable, verdicts: Sequence[ClaimVerdict], notes: Sequence[str], **facts: Any
) -> ReproductionMeta:
    """The contents of ``reproduction.json``; ``facts`` are ``quick``, ``simulations`` and ``cpu_s``."""
    return ReproductionMeta(
        version=version("fairlane"),
        paper=name,
        title=paper.title,
        citation=paper.citation,
        simulator=sources(),
        notes=list(notes),
        claims=[_claim(one) for one in verdicts],
        **facts,
    )


def _claim(one: ClaimVerdict) -> ClaimResult:
    return ClaimResult(
        id=one.claim.id,
        where=one.claim.where,
        paper=one.claim.claim,
        verdict=str(one.ending),
        words=one.line,
        missing=list(one.missing),
        clauses=[_clause(clause) for clause in one.clauses],
    )


def _clause(one: ClauseVerdict) -> ClauseResult:
    numbers = [_number(number, one) for number in one.numbers]
    return ClauseResult(verdict=str(one.verdict), explained=one.explained, numbers=numbers)


def _number(number: Measured, clause: ClauseVerdict) -> Number:
    found = number.findings.values()
    return Number(
        label=number.label,
        band=band_of(number, clause),
        reported=number.first.reported,
        replicates=list(number.findings),
        values=[None if isnan(one.value) else one.value for one in found],
        lows=[one.low for one in found],
        highs=[one.high for one in found],
        holds=[one.holds for one in found],
    )
