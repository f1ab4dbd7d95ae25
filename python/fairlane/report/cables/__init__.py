"""The page of a survey of failures: how much each cable's failure slows down each job, most critical cable first."""

from typing import Any

import polars as pl

from fairlane.cables.results import Cables
from fairlane.engine.tables import PS
from fairlane.errors import Problem, ScenarioError
from fairlane.report.meta import meta_of, named
from fairlane.wording import plural, seconds, significant


def data_of(found: Cables, compare: Cables | None = None, compare_name: str = "") -> dict[str, Any]:
    """What the page of a survey contains, as JSON.

    Raises ``ScenarioError`` if nothing failed in both of two surveys.
    """
    data = {"meta": _meta(found), **_measured(found), "sentences": _sentences(found)}
    if compare is None:
        return {**data, "compare": None}
    if set(found.ranking["part"]).isdisjoint(compare.ranking["part"]):
        words = f"has no {found.what} of the survey"
        raise ScenarioError(Problem("--compare", words, compare_name, f"a survey with some of the same {found.whats}"))
    return {**data, "compare": {"meta": _meta(compare), **_measured(compare), "sentence": _against(found, compare)}}


def _measured(found: Cables) -> dict[str, Any]:
    of_parts = found.ranking.drop("behind", "behind_low", "behind_high")
    lost = found.runs.group_by("part").agg(pl.col("packets_lost").mean(), pl.col("routing").drop_nulls().first())
    of_jobs = found.slowdowns.select(
        "part", "name", "replicates", "slowdown", "slowdown_low", "slowdown_high", "unbroken_s", "failed", "stalled"
    )
    parts = of_parts.join(lost, on="part", how="left").sort("rank").to_dicts()
    return {"what": found.what, "whats": found.whats, "parts": parts, "jobs": of_jobs.to_dicts()}


def _meta(found: Cables) -> dict[str, Any]:
    meta = found.meta
    scenario, name = named(found, meta)
    facts = [f"{found.ranking.height} {found.whats}", plural(len(meta["seeds"]), "seed")]
    facts += [f"fails after {seconds(meta['at_ps'] * PS)} of {seconds(meta['duration_ps'] * PS)}"]
    facts += ["partial: interrupted"] if meta["partial"] else []
    provenance = {
        "folder": name,
        "scenario": scenario,
        "fairlane": meta["version"],
        "seeds": ", ".join(map(str, meta["seeds"])),
        "routes afterwards": ", ".join(found.runs["routing"].drop_nulls().unique().sort()),
    }
    return meta_of(f"{scenario}: critical {found.whats}", name, facts, provenance, _notes(found))


def _notes(found: Cables) -> list[str]:
    notes = found.repeated()
    if len(found.meta["seeds"]) < 3:
        notes.append("Fewer than three seeds give no confidence interval.")
    if errors := found.ranking["errors"].sum():
        notes.append(f"{plural(int(errors), 'simulation')} could not continue after the failure; they come first.")
    return notes


def _sentences(found: Cables) -> dict[str, str]:
    ranking = found.ranking
    whole = plural(ranking.height, found.what, found.whats)
    harmed = ranking.filter((pl.col("jobs_failed") > 0) | (pl.col("jobs_stalled") > 0)).height
    cut = ranking.filter(pl.col("hosts_cut_off") > 0).height
    words = f"Of {whole}, {harmed} make jobs fail or stall, and {cut} cut hosts off."
    return {
        "slowdowns": f"{found.headline()}.{_alike(found)}",
        "parts": words if harmed or cut else f"Of {whole}, none makes a job fail or stall or cuts a host off.",
        "jobs": _worst(found),
    }


def _alike(found: Cables) -> str:
    """How many others may be as critical as the first, where the slowdown decides the order."""
    others = found.ranking.height - 1
    return f" {found.alike} of {others} others cannot be distinguished from it." if found.alike else ""


def _worst(found: Cables) -> str:
    known = found.slowdowns.drop_nulls("slowdown").sort("slowdown", descending=True)
    if not known.height:
        return "No job completed anything in both forks."
    row = known.row(0, named=True)
    return f"{row['name']} suffers most: slowdown {significant(row['slowdown'], 3)} if {row['part']} fails."


def _against(found: Cables, other: Cables) -> str:
    both = found.ranking.join(other.ranking, on="part", suffix="_other").drop_nulls(["slowdown", "slowdown_other"])
    if not both.height:
        return f"No {found.what} has a slowdown in both surveys."
    less = both.filter(pl.col("slowdown_other") < pl.col("slowdown")).height
    return (
        f"The greatest slowdown is less in the other survey for {less} of {both.height} {found.whats} "
        f"that fail in both."
    )
