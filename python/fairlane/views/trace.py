"""Recorded traces: their ranks, calls and bytes, and what a simulation would refuse."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from fairlane.views.model import View
from fairlane.views.tables import Column, Row, Table, terms
from fairlane.wording import data_size, plural, seconds
from fairlane.workload.recorded import unsupported_lines

_CALL_KINDS = ("communicators", "windows", "requests", "collectives", "one-sided operations", "calls", "regions")


def trace_view(trace: Mapping[str, Any], name: str) -> View:
    """A description of a trace; what it has none of is left out."""
    rows = [row for kind in _CALL_KINDS for row in _counted(kind, trace)]
    sections = [part for before, row in zip([None, *rows], rows, strict=False) for part in _after(before, row)]
    unsupported = trace["unsupported"]
    refused = ["Cannot be simulated:", *(f"  {line}" for line in unsupported_lines(trace))]
    refused.append("trace.exclude simulates the rest without the calls that it names.")
    shown = [Column("kind", "kind"), Column("name", "name", left=True), Column("count", "count")]
    said = f"{sum(trace['calls'].values()):,} calls."
    events = f"{plural(trace['ranks'], 'rank')}, {plural(trace['events'], 'event')}"
    return View(
        title=f"{name}: recorded trace",
        headline=f"{trace['format']} {trace['version']}: {events}",
        facts=refused if unsupported else ["Every recorded call can be simulated"],
        parts=[
            terms(dict(_totals(trace)), "Trace", sentence=f"{events}."),
            Table([*shown, Column("note", "note", left=True)], sections, "Calls and what they use", sentence=said),
        ],
    )


def _after(before: Row | None, row: Row) -> list[Row | None]:
    """A row, and before the first of a kind the end of the section above."""
    return [row] if before is None or before["kind"] == row["kind"] else [None, row]


def _totals(trace: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if trace["duration_seconds"]:
        yield "recorded", seconds(trace["duration_seconds"])
    cpu, in_mpi = trace["cpu_seconds"], trace["cpu_seconds_in_mpi"]
    if cpu is not None:
        yield "CPU time", f"{seconds(cpu)} of all ranks" + (f", {seconds(in_mpi)} of it in MPI" if in_mpi else "")
    yield "messages", f"{trace['p2p_messages']:,} point to point, {data_size(trace['p2p_bytes'])}"
    if trace["wildcard_receives"]:
        yield "wildcards", f"{trace['wildcard_receives']:,} receives from any source"
    if trace["p2p_messages"]:
        near = trace["neighbours"]
        yield "neighbours", f"{near['min']} to {near['max']} of a rank, {near['mean']:.1f} on average"


def _counted(kind: str, trace: Mapping[str, Any]) -> list[Row]:
    """Count by name, the most frequent first, with a note."""
    counts, notes = trace[kind.removesuffix(" operations").replace("-", "_")], {}
    if counts and isinstance(next(iter(counts.values())), Mapping):
        notes = {name: data_size(count["bytes"]) for name, count in counts.items() if count["bytes"]}
        counts = {name: count["calls"] for name, count in counts.items()}
    if kind == "calls":
        refused: Counter[str] = Counter()
        for entry in trace["unsupported"]:
            refused[entry["call"]] += entry["count"]
        notes = {name: f"{count:,} cannot be simulated" for name, count in refused.items()}
        notes |= {name: f"{count:,} found nothing" for name, count in trace["failed_polls"].items()}
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"kind": kind, "name": name, "count": count, "note": notes.get(name, "")} for name, count in ordered]
