"""Recorded traces in words."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from fairlane.wording import data_size, seconds
from fairlane.workload.recorded import unsupported_lines


def trace_lines(trace: Mapping[str, Any]) -> Iterator[str]:
    """The lines about a trace; what it has none of is left out."""
    yield f"format      {trace['format']} {trace['version']}"
    yield f"ranks       {trace['ranks']}"
    yield f"events      {trace['events']:,}"
    yield from _times(trace)
    yield f"messages    {trace['p2p_messages']:,} point to point, {data_size(trace['p2p_bytes'])}"
    if trace["wildcard_receives"]:
        yield f"wildcards   {trace['wildcard_receives']:,} receives from any source"
    if trace["p2p_messages"]:
        near = trace["neighbours"]
        yield f"neighbours  {near['min']} to {near['max']} of a rank, {near['mean']:.1f} on average"
    collectives, polls = trace["collectives"], trace["failed_polls"]
    yield from _unsupported(trace)
    yield from _table("communicators", trace["communicators"], {})
    yield from _table("windows", trace["windows"], {})
    yield from _table("requests", trace["requests"], {})
    yield from _table(
        "collectives",
        {name: count["calls"] for name, count in collectives.items()},
        {name: data_size(count["bytes"]) for name, count in collectives.items() if count["bytes"]},
    )
    one_sided = trace["one_sided"]
    yield from _table(
        "one-sided operations",
        {name: count["calls"] for name, count in one_sided.items()},
        {name: data_size(count["bytes"]) for name, count in one_sided.items()},
    )
    notes = {name: f"{count:,} found nothing" for name, count in polls.items()}
    refused = _refused(trace)
    notes |= {name: f"{count:,} cannot be simulated" for name, count in refused.items() if name not in notes}
    yield from _table("calls", trace["calls"], notes)
    yield from _table("regions", trace["regions"], {})


def _times(trace: Mapping[str, Any]) -> Iterator[str]:
    if trace["duration_seconds"] is not None:
        yield f"recorded    {seconds(trace['duration_seconds'])}"
    cpu, in_mpi = trace["cpu_seconds"], trace["cpu_seconds_in_mpi"]
    if cpu is not None:
        yield f"CPU time    {seconds(cpu)} of all ranks" + (f", {seconds(in_mpi)} of it in MPI" if in_mpi else "")


def _unsupported(trace: Mapping[str, Any]) -> Iterator[str]:
    """What a simulation would refuse, which is what a reader wants to know first."""
    if trace["unsupported"]:
        yield "cannot be simulated:"
        yield from (f"  {line}" for line in unsupported_lines(trace))
        yield "  (trace.exclude simulates the rest without the calls that it names)"
    else:
        yield "simulation  every recorded call can be simulated"


def _refused(trace: Mapping[str, Any]) -> Counter[str]:
    """How many calls of each name cannot be simulated."""
    counts: Counter[str] = Counter()
    for entry in trace["unsupported"]:
        counts[entry["call"]] += entry["count"]
    return counts


def _table(heading: str, counts: Mapping[str, int], notes: Mapping[str, str]) -> Iterator[str]:
    """How often there is what, the most frequent first, with a note."""
    if not counts:
        return
    yield f"{heading}:"
    width = max(18, *map(len, counts))
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"  {name:{width}}  {count:10,}  {notes.get(name, '')}".rstrip()
