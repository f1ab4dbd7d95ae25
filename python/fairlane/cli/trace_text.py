"""Recorded traces and communication patterns in words, and patterns as data for JSON."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from fairlane.pattern import BULK, Pattern, Traffic
from fairlane.wording import data_size, percent, plural, seconds, significant
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


def pattern_lines(found: Pattern) -> Iterator[str]:
    """What ``trace pattern`` and ``workload pattern`` print."""
    traffic, verdict = found.traffic, found.verdict
    unit = f", local unit of {plural(verdict.unit, 'rank')}" if verdict.unit else ""
    yield f"pattern      {verdict.kind}{unit}"
    yield f"because      {verdict.reason}"
    yield f"ranks        {traffic.ranks}"
    words = f"{plural(int(traffic.messages.sum()), 'message')}, {data_size(int(traffic.total.sum()))}"
    yield f"messages     {words}, {percent(traffic.collective_share)} of the bytes in collectives"
    if found.evidence is None:
        return
    for word, amounts in (("sent", traffic.sent), ("received", traffic.received)):
        least, most, mean = data_size(int(amounts.min())), data_size(int(amounts.max())), data_size(int(amounts.mean()))
        yield f"{word:12} {least} to {most} by rank, {mean} on average"
    yield from _evidence_lines(found)
    yield from _size_lines(traffic)


def _evidence_lines(found: Pattern) -> Iterator[str]:
    evidence, communities = found.evidence, found.communities
    assert evidence is not None, "bytes are sent"
    bulk = f"{significant(evidence.bulk_partners)} account for {BULK:.0%} of its bytes"
    yield f"partners     {significant(evidence.partners)} of the median rank; {bulk}"
    sides = " x ".join(map(str, evidence.grid))
    yield (
        f"best grid    {sides}, {evidence.grid_neighbours}: {percent(evidence.grid_share)} of the bytes, "
        f"by chance {percent(evidence.grid_chance)}"
    )
    yield (
        f"best units   {evidence.unit} consecutive ranks: {percent(evidence.unit_share)} of the bytes, "
        f"by chance {percent(evidence.unit_chance)}"
    )
    sizes = sorted(len(members) for members in communities.members)
    span = f"{sizes[0]}" if sizes[0] == sizes[-1] else f"{sizes[0]} to {sizes[-1]}"
    yield (
        f"communities  {len(sizes)} of {span} ranks: {percent(communities.inside)} of the bytes, "
        f"modularity {communities.modularity:.2f}"
    )


def _size_lines(traffic: Traffic) -> Iterator[str]:
    for kind, sizes in traffic.sizes.items():
        if not sizes:
            continue
        yield f"{kind}, by message size:"
        for limit, (count, amount) in _binned(sizes).items():
            messages = plural(count, "message", count=False)
            yield f"  up to {data_size(limit):>9}  {count:10,} {messages:8}  {data_size(amount):>9}"


def _binned(sizes: Mapping[int, int]) -> dict[int, tuple[int, int]]:
    """Messages and bytes by powers of four."""
    bins: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for size, count in sorted(sizes.items()):
        limit = 0 if size == 0 else 4 ** -(-(size - 1).bit_length() // 2)
        bins[limit] = (bins[limit][0] + count, bins[limit][1] + size * count)
    return dict(bins)


def pattern_json(found: Pattern) -> dict[str, Any]:
    """The same for programs, with the matrix."""
    traffic = found.traffic
    return {
        "verdict": asdict(found.verdict),
        "evidence": asdict(found.evidence) if found.evidence else None,
        "ranks": traffic.ranks,
        "messages": int(traffic.messages.sum()),
        "bytes": int(traffic.total.sum()),
        "collective_share": traffic.collective_share,
        "communities": asdict(found.communities),
        "message_sizes": traffic.sizes,
        "sent": traffic.sent.tolist(),
        "received": traffic.received.tolist(),
        "matrix": traffic.total.tolist(),
    }
