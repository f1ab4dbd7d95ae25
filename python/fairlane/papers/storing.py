"""Claims with their verdicts as JSON has them, and what a page of a reproduction needs besides its tables.

Findings of other replicates, read from the ``clauses.csv`` of runs on other machines or at other times.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from math import isfinite, isnan, nan
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import significant
from fairlane.papers.folder import BAND, Claim, PaperTable
from fairlane.papers.judging import Finding, Judged, edges
from fairlane.papers.judging import band_of as band_text
from fairlane.papers.planning import Plan
from fairlane.papers.verdicts import ClaimVerdict, ClauseVerdict, Measured, Verdict
from fairlane.results.reproduction import ClaimResult, ClauseResult, Number, ReproductionMeta
from fairlane.study.tasks.closure import sources


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


CLAUSES = "clauses.csv"
"""The file with the numbers of each clause in each replicate."""
COLUMNS = {
    "claim": pl.String,
    "clause": pl.Int64,
    "measured": pl.String,
    "replicate": pl.Int64,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "in_band": pl.Boolean,
    "scaled": pl.String,
    "simulator": pl.String,
}
"""What is needed of it: ``value`` is null where nothing was measured, ``scaled`` is what a run lacks of the paper's,
``simulator`` a digest of its files."""
VARIANT = "variant"
"""The column with the variant of which a replicate is; without it that is the paper's folder itself."""

Known = Mapping[str, Mapping[str, Mapping[int, Judged]]]
"""The findings of other replicates, by variant, claim and replicate."""


def known(files: Sequence[Path], plan: Plan, *, running: bool) -> dict[str, dict[str, dict[int, Judged]]]:
    """The findings in some files, of the plan's claims; of a replicate that several have, those of the first file.

    Raises ``ScenarioError`` if a file has other columns, or a claim, a clause or a band that the paper's folder does
    not have, or if numbers of scaled and of full experiments would be judged together: of several files, or of a file
    and of the plan if that is ``running``.
    """
    replicates_by_claim: dict[str, dict[str, dict[int, Judged]]] = {}
    names = [claim.id for claim in plan.folder.claims]
    variants = ["", *plan.folder.paper.variant]
    for path in files:
        table = _read(path)
        if unknown := next((name for name in table["claim"] if name not in names), None):
            problem = Problem.unknown("claim", f"claim of {plan.name}", unknown, names, unknown)
            raise ScenarioError(replace(problem, file=str(path)))
        if unknown := next((name for name in table[VARIANT] if name not in variants), None):
            problem = Problem.unknown(VARIANT, f"variant of {plan.name}", unknown, variants[1:], unknown)
            raise ScenarioError(replace(problem, file=str(path)))
        for claim in plan.claims:
            parts = table.filter(claim=claim.id).group_by(VARIANT, "replicate", maintain_order=True)
            for (variant, number), part in parts:
                of = replicates_by_claim.setdefault(str(variant), {}).setdefault(claim.id, {})
                rows = part.rows(named=True)
                findings = [_finding(path, claim, row) for row in rows]
                judged = Judged(claim, findings, (), rows[0]["scaled"], rows[0]["simulator"])
                planned = running and variant == (plan.options.variant or "")
                scaled = (
                    plan.scales(claim)
                    if planned
                    else next((replicate.scaled for replicate in of.values()), judged.scaled)
                )
                if bool(judged.scaled) != bool(scaled):
                    message = f"{claim.id}, replicate {number}: scaled and full experiments cannot be judged together"
                    allowed = f"replicates of {'scaled' if scaled else 'full'} experiments"
                    raise ScenarioError(Problem("scaled", message, judged.scaled, allowed, file=str(path)))
                of.setdefault(int(str(number)), judged)
    return replicates_by_claim


def _read(path: Path) -> pl.DataFrame:
    file = path / CLAUSES if path.is_dir() else path
    try:
        names = pl.read_csv(file, n_rows=0).columns
        if missing := [name for name in COLUMNS if name not in names]:
            raise ScenarioError(
                Problem("columns", f"{missing[0]} is missing", allowed=", ".join(COLUMNS), file=str(file))
            )
        types = {**COLUMNS, VARIANT: pl.String}
        clauses = pl.read_csv(file, columns=[name for name in types if name in names], schema_overrides=types)
        without = pl.lit("").alias(VARIANT) if VARIANT not in names else pl.col(VARIANT).fill_null("")
        scaled = pl.col("scaled").fill_null("").replace({"false": "", "true": "not said"})  # of earlier versions
        return clauses.with_columns(without, scaled)
    except (OSError, pl.exceptions.PolarsError) as error:
        words = f"cannot be read: {str(error).splitlines()[0]}"
        raise ScenarioError(Problem("--with", words, allowed=f"a {CLAUSES} of this paper", file=str(file))) from None


def _finding(path: Path, claim: Claim, row: Mapping[str, Any]) -> Finding:
    at, low, high = row["clause"] - 1, row["low"], row["high"]
    if not 0 <= at < len(claim.clause):
        allowed = f"1 to {len(claim.clause)}, the clauses of {claim.id}"
        raise ScenarioError(Problem("clause", "unknown", row["clause"], allowed, file=str(path)))
    clause = claim.clause[at]
    fixed = edges(clause)
    if fixed is not None and fixed != (low, high):
        measured = f"{claim.id}, clause {row['clause']}: another band"
        raise ScenarioError(Problem("low, high", measured, f"{low} to {high}", clause.band, file=str(path)))
    value = nan if row["value"] is None else row["value"]
    measured = f"{row['measured']}: {value:.4g} ({band_text(clause, low, high)})"
    return Finding(at, measured, value, low, high, row["in_band"], clause.reported, row["measured"])
