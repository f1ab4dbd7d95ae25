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


def numbers(verdict: ClaimVerdict) -> Iterator[tuple[ClauseVerdict, Measured]]:
    """Every number of a claim, with its clause."""
    for clause in verdict.clauses:
        for number in clause.numbers:
            yield clause, number


def band_of(number: Measured, clause: ClauseVerdict) -> str:
    """The band in the first replicate, as text; with a tilde where it differs between replicates."""
    first, match = number.first, BAND.fullmatch(clause.clause.band)
    differs = len({(finding.low, finding.high) for finding in number.findings.values()}) > 1
    about = "~" if differs else ""
    ends = ["–" if finding is None or isnan(finding) else significant(finding) for finding in (first.low, first.high)]
    if match is None or not match["operator"]:
        return f"{about}{ends[0]} to {ends[1]}"
    return f"{match['operator']} {about}{ends[0] if first.low is not None else ends[1]}"


def spread_of(number: Measured) -> str:
    """Median and range over replicates, as text."""
    if number.summary is None:
        return "–"
    middle, least, greatest = (significant(value) for value in number.summary)
    return middle if least == greatest else f"{middle} ({least} to {greatest})"


def written(verdict: ClaimVerdict) -> dict[str, object]:
    """A claim, its last word, and the numbers of the first replicate and of all."""
    claim = {"id": verdict.claim.id, "where": verdict.claim.where, "claim": verdict.claim.claim}
    first = verdict.judged[min(verdict.judged)]
    findings = [
        {
            "measured": finding.words,
            "value": None if isnan(finding.value) else finding.value,
            "low": finding.low,
            "high": finding.high,
            "reported": finding.reported or None,
            "holds": finding.holds,
        }
        for finding in first.findings
    ]
    clauses = [
        {
            "clause": clause.number + 1,
            "verdict": clause.verdict,
            "replicates": clause.replicates,
            "in_band": clause.held,
            "numbers": [{"measured": finding.label, "values": finding.values} for finding in clause.numbers],
        }
        for clause in verdict.clauses
    ]
    return {
        **claim,
        "verdict": verdict.ending,
        "line": verdict.line,
        "replicates": verdict.complete,
        "holds": {Verdict.HOLDS: True, Verdict.CONTRADICTED: False}.get(verdict.ending),
        "scaled": bool(first.scaled),
        "findings": findings,
        "clauses": clauses,
        "missing": list(verdict.missing),
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
        claims=[_claim(verdict) for verdict in verdicts],
        **facts,
    )


def _claim(claim: ClaimVerdict) -> ClaimResult:
    return ClaimResult(
        id=claim.title,
        where=claim.claim.where,
        paper=claim.claim.claim,
        verdict=str(claim.ending),
        words=claim.line,
        brief=replace(claim, under=()).words,
        missing=list(claim.missing)
        or [
            f"clause {at + 1} (band {asked.band}): its query has no rows"
            for at, asked in enumerate(claim.claim.clause)
            if at not in {clause.number for clause in claim.clauses}
        ],
        clauses=[_clause(clause) for clause in claim.clauses],
        under=[_claim(other) for other in claim.under],
    )


def _clause(clause: ClauseVerdict) -> ClauseResult:
    numbers = [_number(number, clause) for number in clause.numbers]
    return ClauseResult(verdict=str(clause.verdict), brief=clause.words, explained=clause.explained, numbers=numbers)


def _number(number: Measured, clause: ClauseVerdict) -> Number:
    findings = number.findings.values()
    return Number(
        label=number.label,
        band=band_of(number, clause),
        reported=number.first.reported,
        replicates=list(number.findings),
        values=[finding.value if isfinite(finding.value) else None for finding in findings],
        lows=[finding.low for finding in findings],
        highs=[finding.high for finding in findings],
        holds=[finding.holds for finding in findings],
    )
