"""The page of a reproduction: claims with their verdicts, numbers against bands, figures, times of simulations."""

from collections import Counter
from typing import Any

from fairlane.errors import Problem, ScenarioError
from fairlane.report import robustness
from fairlane.report.meta import meta_of
from fairlane.report.reproduction.figures import figures_of
from fairlane.report.tables import rows_of
from fairlane.results.reproduction import ClaimResult, ReproductionResults
from fairlane.wording import listed, plural, seconds

ORDER = ("holds", "holds under stated conditions", "contradicted", "undecided", "calibrated", "scaled", "not run")
"""Verdicts in the order in which pages name them."""


def data_of(
    found: ReproductionResults, compare: ReproductionResults | None = None, compare_name: str = ""
) -> dict[str, Any]:
    """What the page of a reproduction contains, as JSON.

    Raises ``ScenarioError`` if two have no claim in common.
    """
    claims = found.meta.claims
    data = {
        "meta": _meta(found),
        "claims": [one.model_dump() for one in claims],
        "order": list(ORDER),
        "cells": rows_of(found.cells),
        "figures": figures_of(found.figures),
        "map": None if found.robustness is None else robustness.map_of(found.robustness),
        "sentences": {"claims": _verdicts(claims), "numbers": _numbers(claims), "cells": _cells(found)},
    }
    if compare is None:
        return {**data, "compare": None}
    others = {one.id: one for one in compare.meta.claims}
    if not any(one.id in others for one in claims):
        words = f"has no claim of {found.meta.paper}"
        raise ScenarioError(Problem("--compare", words, compare_name, "a reproduction of the same paper"))
    both = {"claims": [one.model_dump() for one in compare.meta.claims], "sentence": _changed(claims, others)}
    return {**data, "compare": {"meta": _meta(compare), **both}}


def _meta(found: ReproductionResults) -> dict[str, Any]:
    meta = found.meta
    name = found.folder.name if found.folder else meta.paper
    replicates = {at for claim in meta.claims for one in claim.clauses for it in one.numbers for at in it.replicates}
    facts = [plural(len(meta.claims), "claim"), plural(max(1, len(replicates)), "replicate")]
    facts += [f"{plural(meta.simulations, 'simulation')}, {seconds(meta.cpu_s)} of processor time"]
    facts += ["scaled: a trial, not a verdict"] if meta.quick else []
    provenance = {
        "folder": name,
        "paper": meta.paper,
        "citation": meta.citation,
        "fairlane": meta.version,
        "digest of the simulator": meta.simulator,
    }
    return meta_of(meta.title, name, facts, provenance, meta.notes)


def _verdicts(claims: list[ClaimResult]) -> str:
    """How many claims have each verdict."""
    counts = Counter(one.verdict for one in claims)
    known = [*ORDER, *(one for one in counts if one not in ORDER)]
    return f"{plural(len(claims), 'claim')}: {listed([f'{counts[one]} {one}' for one in known if counts[one]], 7)}."


def _numbers(claims: list[ClaimResult]) -> str:
    held = [all(it.holds) for claim in claims for one in claim.clauses for it in one.numbers]
    some = [any(it.holds) for claim in claims for one in claim.clauses for it in one.numbers]
    if not held:
        return "Nothing was measured."
    every, none = sum(held), len(some) - sum(some)
    return f"{every} of {plural(len(held), 'number')} are in their bands in every replicate, {none} in none."


def _cells(found: ReproductionResults) -> str:
    cells = found.cells
    if cells.is_empty():
        return "Nothing was simulated: the claims are judged by stored replicates."
    failed = int(cells["error"].is_not_null().sum()) if "error" in cells.columns else 0
    longest = cells.sort("cpu_s", nulls_last=False).row(-1, named=True)
    time = "" if longest["cpu_s"] is None else f"; the longest took {seconds(longest['cpu_s'])} of processor time"
    return f"{plural(cells.height, 'simulation')}, {failed} failed{time}."


def _changed(claims: list[ClaimResult], others: dict[str, ClaimResult]) -> str:
    both = [(one, others[one.id]) for one in claims if one.id in others]
    other = [
        f"{one.id} ({other.verdict} there, {one.verdict} here)" for one, other in both if one.verdict != other.verdict
    ]
    if not other:
        return f"All {plural(len(both), 'claim')} that both have got the same verdict."
    return f"{len(other)} of {plural(len(both), 'claim')} have another verdict: {listed(other)}."
