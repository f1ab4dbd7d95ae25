"""The page of a sweep of loads: accepted throughput and latency by offered load, and where the fabric saturates."""

from typing import Any

import polars as pl

from fairlane.engine.tables import PS
from fairlane.errors import Problem, ScenarioError
from fairlane.report.meta import meta_of, named
from fairlane.saturation.results import ACCEPTED_IN_FULL, Saturation
from fairlane.wording import percent, plural, seconds

_TIMES = ("message_mean_ps", "message_p50_ps", "message_p99_ps", "message_p999_ps", "packet_mean_ps", "packet_p99_ps")
_INTERVALS = tuple(f"{name}_{end}" for name in ("message_mean_ps", "message_p99_ps") for end in ("low", "high"))


def data_of(found: Saturation, compare: Saturation | None = None, compare_name: str = "") -> dict[str, Any]:
    """What the page of a sweep contains, as JSON. Raises ``ScenarioError`` if two sweeps have no load in common."""
    data = {"meta": _meta(found), **_measured(found), "sentences": _sentences(found), "limit": ACCEPTED_IN_FULL}
    if compare is None:
        return {**data, "compare": None}
    if set(found.points["load"]).isdisjoint(compare.points["load"]):
        words = "has no load of the sweep"
        raise ScenarioError(Problem("--compare", words, compare_name, "a sweep with some of the same loads"))
    return {**data, "compare": {"meta": _meta(compare), **_measured(compare), "sentence": _against(found, compare)}}


def _measured(found: Saturation) -> dict[str, Any]:
    full, saturated = found.saturation()
    shares = ("load", "seeds", "offered", "accepted", "accepted_low", "accepted_high", "links", "ratio", "saturated")
    times = [name for name in (*_TIMES, *_INTERVALS) if name in found.points.columns]
    points = found.points.select(*shares, *(pl.col(name) * PS for name in times))
    points = points.rename({name: name.replace("_ps", "") for name in times})
    runs = found.runs.select("load", "seed", "offered", "accepted")
    return {"points": points.to_dicts(), "runs": runs.to_dicts(), "full": full, "from": saturated}


def _meta(found: Saturation) -> dict[str, Any]:
    meta = found.meta
    scenario, name = named(found, meta)
    facts = [plural(found.points.height, "load"), plural(len(meta["seeds"]), "seed")]
    facts += [f"{seconds((meta['duration_ps'] - meta['warm_up_ps']) * PS)} measured"]
    facts += [f"{seconds(meta['warm_up_ps'] * PS)} of warm-up", *(["partial: interrupted"] if meta["partial"] else [])]
    provenance = {
        "folder": name,
        "scenario": scenario,
        "fairlane": meta["version"],
        "seeds": ", ".join(map(str, meta["seeds"])),
        "loads": ", ".join(f"{load:.3g}" for load in found.points["load"]),
    }
    return meta_of(f"{scenario}: load sweep", name, facts, provenance, found.repeated())


def _sentences(found: Saturation) -> dict[str, str]:
    points = found.points.sort("load")
    top = points.sort("accepted").row(-1, named=True)
    words = (
        f"{found.headline()}; the largest accepted throughput is {percent(top['accepted'])} of the injection bandwidth"
    )
    made = {"throughput": f"{words}, at load {top['load']:g}."}
    known = points.filter(pl.col("message_mean_ps").is_not_null())
    if known.height:
        first, last = known.row(0, named=True), known.row(-1, named=True)
        means = [seconds(row["message_mean_ps"] * PS) for row in (first, last)]
        words = (
            f"The mean message latency is {means[0]} at load {first['load']:g} and {means[1]} at load {last['load']:g}"
        )
        made["latency"] = f"{words}; 99% of messages take at most {seconds(last['message_p99_ps'] * PS)} there."
    return made


def _against(found: Saturation, other: Saturation) -> str:
    most = [one.points["accepted"].to_numpy().max() for one in (found, other)]
    words = f"Largest accepted throughput {percent(most[0])}, in the other sweep {percent(most[1])}"
    return f"{words}; the other: {other.headline()}."
