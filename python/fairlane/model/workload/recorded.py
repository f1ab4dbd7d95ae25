"""The description of a recorded trace, made before a simulation starts, and what of the trace cannot be simulated.

The OTF2 library is C code that trusts its files: on damaged ones it can loop, crash or allocate without end. An archive
is therefore described by a process with limits; one that it has read from its first record to its last is then replayed
in this process.
"""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairlane.core.errors import BuildError, Problem, RunError, nearest
from fairlane.core.signals import HANG_S
from fairlane.core.wording import plural

MOST_SHOWN = 8
"""Problems, or names, that an error lists; ``trace describe`` has all."""
CPU_S, CPU_S_PER_MB = 10, 1.0
"""Processor time that reading may take, s, and how much more for each megabyte: it takes 0.05 s on a slow machine."""
MEMORY, MEMORY_PER_BYTE = 1 << 30, 2
"""Address space that reading may take, and how much more for each byte of the archive: it does not grow with it."""


def _is_named(call: str, patterns: Iterable[str]) -> bool:
    """Whether a call is one of those that are left out: by its name, or by a prefix and an asterisk."""
    return any(call.startswith(pattern[:-1]) if pattern.endswith("*") else call == pattern for pattern in patterns)


def unsupported_lines(description: Mapping[str, Any], exclude: Sequence[str] = ()) -> Iterator[str]:
    """For each call and reason: how many calls cannot be simulated, where the first is, and why."""
    for entry in description["unsupported"]:
        if _is_named(entry["call"], exclude):
            continue
        calls, of = plural(entry["count"], "call"), plural(entry["ranks"], "rank")
        first = f"first in rank {entry['first_rank']}, record {entry['first_record']:,}"
        yield f"{entry['call']}: {calls} of {of}, {first}: {entry['reason']}"


def left_out_text(description: Mapping[str, Any], exclude: Sequence[str]) -> str:
    """Say how many calls of which names are left out."""
    counts: Counter[str] = Counter()
    for entry in description["unsupported"]:
        if _is_named(entry["call"], exclude):
            counts[entry["call"]] += entry["count"]
    return ", ".join(f"{count:,} {call}" for call, count in counts.most_common())


def unsupported_problems(description: Mapping[str, Any], exclude: Sequence[str], path: str) -> list[Problem]:
    """Why the trace at ``path`` cannot be simulated without what is left out; nothing if it can be."""
    calls = sorted({entry["call"] for entry in description["unsupported"]})
    names = ", ".join(calls) or "nothing: every recorded call can be simulated"
    problems = [
        Problem(
            f"exclude[{at}]", "the trace has no such call that cannot be simulated", name, names, nearest(name, calls)
        )
        for at, name in enumerate(exclude)
        if not any(_is_named(call, [name]) for call in calls)
    ]
    lines = list(unsupported_lines(description, exclude))
    problems += [Problem("path", f"cannot be simulated: {line}", path) for line in lines[:MOST_SHOWN]]
    if len(lines) > MOST_SHOWN:
        more = f"cannot be simulated: {len(lines) - MOST_SHOWN} more kinds of calls, which trace describe lists"
        problems.append(Problem("path", more, path))
    return problems


def iteration_problems(description: Mapping[str, Any], collective: str | None, region: str | None) -> list[Problem]:
    """Whether every rank reaches what bounds its iterations; the recorded alternatives are named with their counts."""
    missing, ranks = description.get("ranks_without_iterations", 0), description["ranks"]
    if not missing:
        return []
    if collective is not None:
        kinds = description["iteration_collectives"]
        counts = {name: total["calls"] for name, total in kinds.items() if total["ranks"] == ranks}
        return [_never("iteration.collective", collective, "call it", missing, ranks, counts)]
    # Fewer calls than ranks: some rank does not have it.
    counts = {
        name: count for name, count in {**description["calls"], **description["regions"]}.items() if count >= ranks
    }
    return [_never("iteration.region", str(region), "enter it", missing, ranks, counts)]


def repeat_problems(description: Mapping[str, Any], path: str) -> list[Problem]:
    """Whether a trace that starts over would do so for ever at one instant."""
    idle = description.get("ranks_without_operations", 0)
    if not idle:
        return []
    message = f"{idle} of {description['ranks']} ranks wait for nothing, so the trace would be repeated without end"
    return [Problem("path", message, path, "repeat = false, or a trace in which every rank computes or receives")]


def _never(key: str, value: str, does: str, missing: int, ranks: int, counts: Mapping[str, int]) -> Problem:
    message = f"{missing} of {ranks} ranks never {does}, so they have no iterations"
    others = {name: count for name, count in counts.items() if name != value}
    listed = sorted(others.items(), key=lambda item: (-item[1], item[0]))
    shown = ", ".join(f"{name} ({plural(count, 'call')})" for name, count in listed[:MOST_SHOWN])
    more = f" and {len(listed) - MOST_SHOWN} more" if len(listed) > MOST_SHOWN else ""
    recorded = (
        f"what all ranks have: {shown}{more}" if shown else "none: there is nothing of the kind that all ranks have"
    )
    return Problem(key, message, value, recorded, nearest(value, others))


def file_marks(trace: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of every file that the trace may consist of: a description holds as long as they stay."""
    folder = trace if trace.is_dir() else trace.parent
    files = sorted(folder.iterdir())
    events = [file for anchor in files if anchor.suffix == ".otf2" for file in sorted((folder / anchor.stem).glob("*"))]
    marks = ((str(file), file.stat()) for file in (*files, *events) if file.is_file())
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in marks)


def is_otf2(trace: Path) -> bool:
    """Whether a trace, as it was unpacked, is for the OTF2 library."""
    return trace.suffix == ".otf2" or (trace.is_dir() and any(trace.glob("*.otf2")))


def describe_apart(trace: str, options: str, size: int) -> str:
    """The description of an OTF2 archive of ``size`` bytes. Raises ``RunError`` or ``BuildError`` if it has none."""
    cpu_s = int(CPU_S + CPU_S_PER_MB * size / 1e6)
    asked = {"trace": trace, "options": options, "cpu_s": cpu_s, "bytes": MEMORY + MEMORY_PER_BYTE * size}
    command = [sys.executable, "-P", "-m", "fairlane.core.otf2_child"]
    try:
        child = subprocess.run(
            command, input=json.dumps(asked).encode(), capture_output=True, check=False, timeout=HANG_S + cpu_s
        )
    except subprocess.TimeoutExpired:
        raise RunError(f"reading it takes more than {HANG_S + cpu_s:g} s: it is damaged") from None
    if child.returncode:
        raise RunError(_death(child.returncode, cpu_s, asked["bytes"], child.stderr))
    answer = json.loads(child.stdout)
    if "description" in answer:
        return str(answer["description"])
    if answer["kind"] == "BuildError":
        raise BuildError(answer["error"])
    raise RunError(answer["error"])


def _death(code: int, cpu_s: int, most: object, output: bytes) -> str:
    if -code in (signal.SIGXCPU, signal.SIGKILL):
        return f"reading it takes more than {cpu_s} s of processor time: it is damaged"
    last = output.decode(errors="replace").strip().rpartition("\n")[2]
    cause = f"signal {signal.Signals(-code).name}" if code < 0 else last or f"exit code {code}"
    return f"the OTF2 library fails on it within {int(str(most)) >> 20} MiB of memory ({cause}): it is damaged"
