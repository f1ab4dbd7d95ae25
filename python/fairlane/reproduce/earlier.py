"""Findings of other replicates, read from the ``clauses.csv`` of runs on other machines or at other times."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.errors import Problem, ScenarioError
from fairlane.reproduce.folder import Claim
from fairlane.reproduce.judging import Finding, Judged, band_of, edges
from fairlane.reproduce.planning import Plan

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
    measured = f"{row['measured']}: {value:.4g} ({band_of(clause, low, high)})"
    return Finding(at, measured, value, low, high, row["in_band"], clause.reported, row["measured"])
