"""Claims with their verdicts as JSON has them, and what a page of a reproduction needs besides its tables."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from math import isfinite, isnan
from typing import Any

from fairlane.reproduce.folder import BAND, PaperTable
from fairlane.reproduce.verdicts import ClaimVerdict, ClauseVerdict, Measured, Verdict
from fairlane.results.reproduction import ClaimResult, ClauseResult, Number, ReproductionMeta
from fairlane.tasks.closure import sources
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


def written(one: ClaimVerdict) -> dict[str, object]:
    """A claim, its last word, and the numbers of the first replicate and of all."""
    claim = {"id": one.claim.id, "where": one.claim.where, "claim": one.claim.claim}
    first = one.judged[min(one.judged)]
    findings = [
        {
            "measured": it.words,
            "value": None if isnan(it.value) else it.value,
            "low": it.low,
            "high": it.high,
            "reported": it.reported or None,
            "holds": it.holds,
        }
        for it in first.findings
    ]
    clauses = [
        {
            "clause": clause.number + 1,
            "verdict": clause.verdict,
            "replicates": clause.replicates,
            "in_band": clause.held,
            "numbers": [{"measured": it.label, "values": it.values} for it in clause.numbers],
        }
        for clause in one.clauses
    ]
    return {
        **claim,
        "verdict": one.ending,
        "line": one.line,
        "replicates": one.complete,
        "holds": {Verdict.HOLDS: True, Verdict.CONTRADICTED: False}.get(one.ending),
        "scaled": bool(first.scaled),
        "findings": findings,
        "clauses": clauses,
        "missing": list(one.missing),
    }


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
        id=one.title,
        where=one.claim.where,
        paper=one.claim.claim,
        verdict=str(one.ending),
        words=one.line,
        brief=replace(one, under=()).words,
        missing=list(one.missing)
        or [
            f"clause {at + 1} (band {asked.band}): its query has no rows"
            for at, asked in enumerate(one.claim.clause)
            if at not in {clause.number for clause in one.clauses}
        ],
        clauses=[_clause(clause) for clause in one.clauses],
        under=[_claim(other) for other in one.under],
    )


def _clause(one: ClauseVerdict) -> ClauseResult:
    numbers = [_number(number, one) for number in one.numbers]
    return ClauseResult(verdict=str(one.verdict), brief=one.words, explained=one.explained, numbers=numbers)


def _number(number: Measured, clause: ClauseVerdict) -> Number:
    found = number.findings.values()
    return Number(
        label=number.label,
        band=band_of(number, clause),
        reported=number.first.reported,
        replicates=list(number.findings),
        values=[one.value if isfinite(one.value) else None for one in found],
        lows=[one.low for one in found],
        highs=[one.high for one in found],
        holds=[one.holds for one in found],
    )
