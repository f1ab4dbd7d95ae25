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
    "scaled": pl.Boolean,
    "simulator": pl.String,
}
"""What is needed of it: ``value`` is null where nothing was measured, ``simulator`` a digest of its files."""

Known = Mapping[str, Mapping[int, Judged]]
"""The findings of other replicates, by claim and replicate."""


def known(files: Sequence[Path], plan: Plan, *, running: bool) -> dict[str, dict[int, Judged]]:
    """The findings in some files, of the plan's claims; of a replicate that several have, those of the first file.

    Raises ``ScenarioError`` if a file has other columns, or a claim, a clause or a band that the paper's folder does
    not have, or if numbers of scaled and of full experiments would be judged together: of several files, or of a file
    and of the plan if that is ``running``.
    """
    found: dict[str, dict[int, Judged]] = {}
    names = [claim.id for claim in plan.folder.claims]
    for path in files:
        table = _read(path)
        if unknown := next((name for name in table["claim"] if name not in names), None):
            problem = Problem.unknown("claim", f"claim of {plan.name}", unknown, names, unknown)
            raise ScenarioError(replace(problem, file=str(path)))
        for claim in plan.claims:
            of = found.setdefault(claim.id, {})
            for (number,), part in table.filter(claim=claim.id).group_by("replicate", maintain_order=True):
                rows = part.rows(named=True)
                findings = [_finding(path, claim, row) for row in rows]
                judged = Judged(claim, findings, (), any(row["scaled"] for row in rows), rows[0]["simulator"])
                scaled = plan.scales(claim) if running else next((one.scaled for one in of.values()), judged.scaled)
                if judged.scaled != scaled:
                    words = f"{claim.id}, replicate {number}: scaled and full experiments cannot be judged together"
                    allowed = f"replicates of {'scaled' if scaled else 'full'} experiments"
                    raise ScenarioError(Problem("scaled", words, judged.scaled, allowed, file=str(path)))
                of.setdefault(int(str(number)), judged)
    return found


def _read(path: Path) -> pl.DataFrame:
    file = path / CLAUSES if path.is_dir() else path
    try:
        names = pl.read_csv(file, n_rows=0).columns
        if missing := [name for name in COLUMNS if name not in names]:
            raise ScenarioError(
                Problem("columns", f"{missing[0]} is missing", allowed=", ".join(COLUMNS), file=str(file))
            )
        return pl.read_csv(file, columns=[*COLUMNS], schema_overrides=COLUMNS)
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
        words = f"{claim.id}, clause {row['clause']}: another band"
        raise ScenarioError(Problem("low, high", words, f"{low} to {high}", clause.band, file=str(path)))
    value = nan if row["value"] is None else row["value"]
    words = f"{row['measured']}: {value:.4g} ({band_of(clause, low, high)})"
    return Finding(at, words, value, low, high, row["in_band"], clause.reported, row["measured"])
