"""The agent on a cluster: the jobs that it knows, its decisions and their steps, and the progress of processes."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from fairlane.cluster.agent.decision import change_in_words
from fairlane.core.wording import plural, seconds
from fairlane.inputs.hosts import shortened
from fairlane.views.model import View
from fairlane.views.tables import EMPTY, Column, Row, Table, columns

if TYPE_CHECKING:
    from fairlane.cluster.agent.cost import Cost
    from fairlane.cluster.agent.journal import Entry, Status
    from fairlane.cluster.agent.progress import Key, Snapshot

_TIME = "%Y-%m-%d %H:%M:%S"


def status(state: "Status") -> View:
    """Show the agent's state, the jobs that it knows with their levels, and its decisions."""
    levels: dict[str, list[str]] = {}
    for assigned in (setting for setting in state.settings if setting.hosts):
        levels.setdefault(assigned.job, []).append(
            str(assigned.level) if assigned.rank is None else f"{assigned.rank}: {assigned.level}"
        )
    jobs = [
        {**job.written(), "nodes": shortened(job.nodes, 40), "level": ", ".join(levels.get(job.id, ())) or None}
        for job in state.jobs.values()
    ]
    shown = columns(id="job", name="name", account="account", partition="partition", nodes="nodes", level="level")
    decisions = [_decision(entry) for entry in state.decisions]
    heads = columns(id="no.", at="at", kind="kind", state="state", settings="settings")
    predicted = any(entry.gain for entry in state.decisions)
    gain = columns(gain="predicted gain") if predicted else []
    reason = Column("reason", "reason", left=True, wrap=True, width=60)
    about = f"{EMPTY}: the default level." if jobs else "No job is known."
    note = "±: 95% interval over replicates of the twin." if predicted else ""
    said = f"{plural(len(decisions), 'decision')}."
    warning = state.cost.warning if state.cost else ""
    return View(
        title="Agent",
        headline=f"agent: {_state(state)}; backend {state.backend or 'none yet'}",
        facts=[],
        parts=[
            Table(shown, jobs, "Jobs", about, sentence=f"{plural(len(jobs), 'job')}."),
            *([_cost(state.cost, state.backend)] if state.cost else []),
            Table([*heads, *gain, reason], decisions, "Decisions", note, sentence=said),
        ],
        remarks=[f"{warning}."] if warning else [],
    )


def _cost(cost: "Cost", backend: str) -> Table:
    """What reading and changing have taken of the last periods."""
    shown = [*columns(what="time for", times="times"), *columns(seconds, median_s="median", p95_s="95th percentile")]
    dry = "; of a dry run, which changes nothing on the network" if backend == "dry_run" else ""
    note = f"The last {plural(len(cost.read_s), 'period')} of {seconds(cost.period_s)}, and the last changes{dry}."
    return Table(shown, cost.rows(), "Cost", note, sentence=f"{seconds(cost.total_s)} of a period.")


def _state(status: "Status") -> str:
    if status.runs:
        return f"runs as process {status.pid} since {_when(status.started)}; {status.doing}"
    return "does not run" + (f"; at {_when(status.at)} it said: {status.doing}" if status.at else "")


def _decision(entry: "Entry") -> dict[str, Any]:
    named = (
        (setting.job if setting.rank is None else f"{setting.job}.{setting.rank}", setting.level)
        for setting in entry.settings
        if setting.hosts
    )
    levels = ", ".join(f"{name}: {level}" for name, level in named) or "none"
    gain = None if entry.gain is None else change_in_words(entry.gain)
    reason = f"{entry.reason}; {entry.error}" if entry.error else entry.reason
    state = f"{entry.state} (dry run)" if entry.backend == "dry_run" else entry.state
    decision = {"id": entry.id, "at": _when(entry.at), "kind": entry.kind, "state": state}
    return decision | {"settings": levels, "gain": gain, "reason": reason}


def steps(decision: int, every: Iterable[Row]) -> Table:
    """The steps of a decision."""
    rows = [{**step, "at": _when(step["at"])} for step in every]
    note = Column("note", "note", left=True, wrap=True)
    said = f"{plural(len(rows), 'step')}."
    return Table([*columns(at="at", state="state"), note], rows, f"Decision {decision}", sentence=said)


def _when(at: float | None) -> str:
    return EMPTY if at is None else datetime.fromtimestamp(at).astimezone().strftime(_TIME)


def progress(snapshot: "Snapshot", rates: Mapping["Key", float]) -> View:
    """Show the progress of the processes of this machine, and their marks per second."""
    rows = [
        {
            "job": process.job,
            "rank": str(process.rank),
            "pid": str(process.pid),
            "user": str(process.user),
            "marks": f"{process.marks:.6g}" if process.marks % 1 else f"{process.marks:.0f}",
            "rate": f"{rates[key]:.4g}" if (key := (process.job, process.rank)) in rates else None,
        }
        for process in snapshot.processes
    ]
    shown = columns(job="job", rank="rank", pid="process", user="user", marks="marks", rate="marks/s")
    said = (
        f"{plural(len(rows), 'process', 'processes')} on {snapshot.host}" if rows else "No process marks its progress"
    )
    return View(
        title=f"Progress on {snapshot.host}",
        headline=said,
        facts=[],
        parts=[Table(shown, rows, sentence=f"{said}.")],
        remarks=[f"{process.file}: {process.reason}" for process in snapshot.skipped],
    )
