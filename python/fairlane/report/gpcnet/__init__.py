"""The page of GPCNeT: congestion impact factors of each network test and transport, and what they come from."""

from typing import Any

from fairlane.engine.tables import PS
from fairlane.errors import Problem, ScenarioError
from fairlane.gpcnet.network_tests import TESTS
from fairlane.gpcnet.results import Gpcnet, written
from fairlane.report.meta import meta_of, named
from fairlane.wording import plural, seconds, significant


def data_of(found: Gpcnet, compare: Gpcnet | None = None, compare_name: str = "") -> dict[str, Any]:
    """What the page of the benchmark contains, as JSON.

    Raises ``ScenarioError`` if no transport was measured by both of two benchmarks.
    """
    data = {"meta": _meta(found), **_measured(found), "sentences": _sentences(found)}
    if compare is None:
        return {**data, "compare": None}
    if set(found.impact["transport"]).isdisjoint(compare.impact["transport"]):
        words = "has no transport of the benchmark"
        raise ScenarioError(Problem("--compare", words, compare_name, "one with some of the same transports"))
    return {**data, "compare": {"meta": _meta(compare), **_measured(compare)}}


def _measured(found: Gpcnet) -> dict[str, Any]:
    titles = {name: test.title for name, test in TESTS.items()}
    rows = [{**row, "title": titles[row["test"]]} for row in written(found)]
    trials = [{**row, "title": titles[row["test"]]} for row in found.trials.iter_rows(named=True)]
    return {"impact": rows, "trials": trials}


def _meta(found: Gpcnet) -> dict[str, Any]:
    meta = found.meta
    scenario, name = named(found, meta)
    facts = [plural(meta["hosts"], "host"), f"{plural(meta['ranks_per_host'], 'rank')} per host"]
    facts += [
        f"{meta['hosts_of_test']} hosts with network tests",
        plural(len(meta["seeds"]), "assignment") + " of hosts",
    ]
    facts += ["partial: interrupted"] if meta["partial"] else []
    provenance = {
        "folder": name,
        "scenario": scenario,
        "fairlane": meta["version"],
        "seeds": ", ".join(map(str, meta["seeds"])),
        "window of the incast": meta["window"],
        "warm-up": seconds(meta["warm_up_ps"] * PS),
    }
    notes = [f"{transport} is left out: {reason}." for transport, reason in meta["left_out"].items()]
    notes += found.repeated()
    if len(meta["seeds"]) < 3:
        notes.append("Fewer than three assignments of hosts give no confidence interval.")
    return meta_of(f"{scenario}: GPCNeT", name, facts, provenance, notes)


def _sentences(found: Gpcnet) -> dict[str, str]:
    known = found.impact.drop_nulls("impact_p99").sort("impact_p99", descending=True)
    worst = "No 99th percentile was measured."
    if known.height:
        row = known.row(0, named=True)
        which = f"{TESTS[row['test']].title}, {row['transport']}"
        worst = f"The largest factor of a 99th percentile is {significant(row['impact_p99'], 2)}: {which}."
    return {"factors": f"{found.headline()}.", "values": worst}
