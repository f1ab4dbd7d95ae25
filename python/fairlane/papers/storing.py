"""The table of verdicts, which every output is made of, and claims as JSON has them.

Findings of other replicates, read from the ``clauses.csv`` of runs on other machines or at other times.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import isnan, nan
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import significant
from fairlane.papers.folder import BAND, Claim
from fairlane.papers.judging import Finding, Judged, edges
from fairlane.papers.judging import band_of as band_text
from fairlane.papers.planning import Plan
from fairlane.papers.verdicts import ClaimVerdict, ClauseVerdict, Measured, Verdict
from fairlane.results.reproduction import Row, clauses_of
from fairlane.results.schemas import VERDICTS, types
from fairlane.study.tasks.closure import sources


def band_of(number: Measured, clause: ClauseVerdict) -> str:
    """The band in the first replicate, as text; with a tilde where it differs between replicates."""
    first, match = number.first, BAND.fullmatch(clause.clause.band)
    differs = len({(finding.low, finding.high) for finding in number.findings.values()}) > 1
    about = "~" if differs else ""
    ends = ["–" if finding is None or isnan(finding) else significant(finding) for finding in (first.low, first.high)]
    if match is None or not match["operator"]:
        return f"{about}{ends[0]} to {ends[1]}"
    return f"{match['operator']} {about}{ends[0] if first.low is not None else ends[1]}"


def table_of(verdicts: Sequence[ClaimVerdict]) -> pl.DataFrame:
    """The table of verdicts, with the columns of ``schemas.VERDICTS``."""
    rows = [row for claim in verdicts for setting in claim.settings for row in _rows(claim, setting)]
    return pl.DataFrame(rows, types(VERDICTS), infer_schema_length=None)


def _rows(claim: ClaimVerdict, setting: ClaimVerdict) -> Iterator[dict[str, Any]]:
    """The rows of a claim by one of its variants."""
    first, this = setting.judged[min(setting.judged)], sources()
    shared = {
        "claim": claim.claim.id,
        "where": claim.claim.where,
        "paper": claim.claim.claim,
        "check": claim.claim.check,
        "verdict": str(claim.ending),
        "numbered": claim.numbered,
        "why": "; ".join(filter(None, (claim.reason, *claim.elsewhere))),
        "line": claim.line,
        "variant": setting.variant,
        "variant_title": setting.variant_title,
        "deciding": setting is claim.deciding,
        "claim_verdict": str(setting.verdict),
        "claim_words": replace(setting, under=()).words,
        "missing": list(setting.missing),
        "replicates": setting.complete,
    }
    judged = {clause.number: clause for clause in setting.clauses}
    for at, clause in enumerate(claim.claim.clause):
        row = {**shared, "clause": at + 1, "near_certain": bool(clause.near_certain), "reported": clause.reported}
        if at not in judged:
            none = {"clause_verdict": "", "clause_why": "", "clause_held": 0, "clause_replicates": 0}
            texts = {"measured": "", "text": "", "scaled": first.scaled, "simulator": first.simulator or this}
            yield {**row, **none, **texts, "band": clause.band}
            continue
        verdict = judged[at]
        row |= {"clause_verdict": str(verdict.verdict), "clause_why": verdict.why}
        row |= {"clause_held": verdict.held, "clause_replicates": verdict.replicates}
        for place, number in enumerate(verdict.numbers):
            over = dict(zip(("median", "min", "max"), number.summary or (None, None, None), strict=True))
            row |= {"number": place, "measured": number.label, "band": band_of(number, verdict), **over}
            for replicate, finding in number.findings.items():
                of = setting.judged[replicate]
                yield {
                    **row,
                    "replicate": replicate,
                    "value": None if isnan(finding.value) else finding.value,
                    "low": finding.low,
                    "high": finding.high,
                    "in_band": finding.holds,
                    "text": finding.words,
                    "scaled": of.scaled,
                    "simulator": of.simulator or this,
                }


def written(setting: Sequence[Row]) -> dict[str, object]:
    """A claim, its last word, and the numbers of the first replicate and of all; from its rows by one variant."""
    row, clauses = setting[0], list(clauses_of(setting))
    return {
        "id": row["claim"],
        "where": row["where"],
        "claim": row["paper"],
        "verdict": row["verdict"],
        "line": row["line"],
        "replicates": row["replicates"],
        "holds": {Verdict.HOLDS: True, Verdict.CONTRADICTED: False}.get(row["verdict"]),
        "scaled": bool(row["scaled"]),
        "findings": [
            {
                "measured": first["text"],
                **{name: first[name] for name in ("value", "low", "high")},
                "reported": first["reported"] or None,
                "holds": first["in_band"],
            }
            for first, *_ in chain.from_iterable(clauses)
        ],
        "clauses": [
            {
                "clause": clause[0][0]["clause"],
                "verdict": clause[0][0]["clause_verdict"],
                "replicates": clause[0][0]["clause_replicates"],
                "in_band": clause[0][0]["clause_held"],
                "numbers": [
                    {
                        "measured": number[0]["measured"],
                        "values": [of["value"] for of in number if of["value"] is not None],
                    }
                    for number in clause
                ],
            }
            for clause in clauses
        ],
        "missing": row["missing"],
    }


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
        _, table = read_table(path, CLAUSES, COLUMNS)
        without = pl.lit("").alias(VARIANT) if VARIANT not in table.columns else pl.col(VARIANT).fill_null("")
        texts = pl.col("scaled").fill_null("").replace({"false": "", "true": "not said"})  # of earlier versions
        table = table.with_columns(without, texts)
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


def read_table(path: Path, name: str, columns: Mapping[str, Any]) -> tuple[Path, pl.DataFrame]:
    """A table that a run has stored, by its file or its folder. Raises ``ScenarioError`` if it lacks ``columns``."""
    file = path / name if path.is_dir() else path
    try:
        names = pl.read_csv(file, n_rows=0).columns
        if missing := [column for column in columns if column not in names]:
            words = f"{missing[0]} is missing"
            raise ScenarioError(Problem("columns", words, allowed=", ".join(columns), file=str(file)))
        return file, pl.read_csv(file, infer_schema_length=None, schema_overrides={VARIANT: pl.String, **columns})
    except (OSError, pl.exceptions.PolarsError) as error:
        words = f"cannot be read: {str(error).splitlines()[0]}"
        raise ScenarioError(Problem("--with", words, allowed=f"a {name} of this paper", file=str(file))) from None


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
