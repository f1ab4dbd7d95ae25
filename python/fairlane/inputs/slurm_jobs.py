"""The jobs that Slurm prints: ``squeue --json``, and tables of ``squeue`` and ``sacct``.

The shape of the JSON depends on Slurm's version: ``job_state`` is text up to 23.02 and a list since 23.11; the nodes
are text at the top of a job, or in ``job_resources.nodes``, which is text up to 23.11 and a table since 24.05. All of
these are read. The output is not filtered by ``squeue``, because 22.05 ignores its filters with ``--json``.

A table with a line of titles may have any columns among which are job and nodes, separated by blanks (``squeue``) or
by ``|`` (``sacct --parsable2``). Without titles a line is ``JOB NODELIST``, as ``squeue -h -o "%i %N"`` prints it.
Lines in front of the titles, prompts, commands and time stamps are skipped.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import plural
from fairlane.inputs.csv_rows import Skipped, added_by_paste
from fairlane.inputs.files import content_lines, parse_json, read_text, reading
from fairlane.inputs.hosts import SlurmJob, assigned, is_list, members, printable

_PRESENT = {"RUNNING", "SUSPENDED", "CONFIGURING", "R", "S", "CF"}
"""States of jobs that have nodes, and their short forms. A job in its prolog is configuring."""
_LEAVING = "COMPLETING"
"""The flag of a job whose processes have ended."""
_TEXTS = {"name": "name", "account": "account", "partition": "partition", "user": "user_name"}
_TITLES = {
    "id": ("JOBID", "JOB_ID"),
    "nodes": ("NODELIST", "NODELIST(REASON)"),
    "name": ("NAME", "JOBNAME"),
    "account": ("ACCOUNT",),
    "partition": ("PARTITION",),
    "user": ("USER",),
    "state": ("ST", "STATE"),
}
"""Titles of columns, in capitals, by what they hold."""
_RULE = re.compile(r"-[-\s]*")
"""The line under the titles of sacct."""


@dataclass(frozen=True)
class JobList:
    """The jobs that have nodes, and how many of those listed have none."""

    jobs: tuple[SlurmJob, ...]
    lines: tuple[int | None, ...]
    """The line of each job in a table."""
    waiting: int
    skipped: Skipped = field(default_factory=Skipped)
    """Lines around a table that a terminal has added."""

    @property
    def notes(self) -> list[str]:
        """Return notes on the jobs that were left out."""
        has = "has" if self.waiting == 1 else "have"
        left_out = f"{plural(self.waiting, 'job')} {has} no nodes, or not any more: left out" if self.waiting else None
        return [note for note in (self.skipped.note, left_out) if note]


def read_job_list(file: Path) -> JobList:
    """The jobs in a file. Raises ``ScenarioError`` with the line of everything that is wrong."""
    with reading(file):
        text = read_text(file)
        data = parse_json(text) if text.lstrip().startswith("{") else None
    if data is None:
        return _of_table(text, file)
    try:
        jobs = jobs_of_json(data)
    except ScenarioError as error:
        raise ScenarioError(problem.at(str(file), None) for problem in error.problems) from None
    return JobList(tuple(jobs), (None,) * len(jobs), len(data["jobs"]) - len(jobs))


def jobs_of_json(data: Any) -> list[SlurmJob]:
    """The jobs that have nodes, in the data of ``squeue --json``. Raises ``ScenarioError``."""
    if not isinstance(data, dict) or not isinstance(data.get("jobs"), list):
        raise ScenarioError(Problem("", "JSON without a list `jobs`", allowed="the output of squeue --json"))
    if errors := data.get("errors"):
        reported = errors if isinstance(errors, list) else [errors]
        raise ScenarioError(Problem("", f"Slurm reports {'; '.join(map(_message, reported))}"))
    return list(_present(data["jobs"]))


def _message(error: Any) -> str:
    if isinstance(error, Mapping):
        return str(error.get("description") or error.get("error") or error)
    return str(error)


def _present(jobs: Sequence[Any]) -> Iterator[SlurmJob]:
    for job in jobs:
        number = _number(job.get("job_id")) if isinstance(job, Mapping) else None
        if number is None:
            raise ScenarioError(Problem("", f"a job without `job_id`: {str(job)[:80]}"))
        states = _states(job.get("job_state"))
        nodes = assigned(_nodes(job))
        if nodes and states & _PRESENT and _LEAVING not in states:
            text = {key: printable(str(job.get(given) or "")) for key, given in _TEXTS.items()}
            yield SlurmJob(str(number), _names(nodes), **text)


def _names(nodes: str) -> tuple[str, ...]:
    try:
        return tuple(members(nodes))
    except ValueError as error:
        raise ScenarioError(Problem("nodes", str(error), nodes, "as rack[01-03,7],login")) from None


def _states(given: Any) -> set[str]:
    return {str(state).upper() for state in (given if isinstance(given, list) else [given])}


def _number(given: Any) -> int | None:
    """A number, or a table of Slurm's that holds one."""
    if isinstance(given, Mapping):
        given = given.get("number") if given.get("set", True) else None
    return given if isinstance(given, int) and not isinstance(given, bool) else None


def _nodes(job: Mapping[str, Any]) -> str:
    """The list of a job's nodes; nothing if it has none."""
    resources = job.get("job_resources")
    inner = resources.get("nodes") if isinstance(resources, Mapping) else None
    if isinstance(inner, Mapping):
        inner = inner.get("list")
    nodes = job.get("nodes") or inner
    return nodes if isinstance(nodes, str) else ""


def _of_table(text: str, file: Path) -> JobList:
    jobs_by_id: dict[str, tuple[SlurmJob, int]] = {}
    problems: list[Problem] = []
    waiting, skipped = 0, Skipped()
    begin, titles, lines = _table(text, file)
    for number, line in lines[: max(begin - 1, 0)]:
        skipped.add(_added(line) or "line in front of the titles", number)
    for number, line in lines[begin:]:
        if _RULE.fullmatch(line) or (titles and _titles(line)):
            continue
        try:
            if (added := _added(line)) and not _has_job(line, titles):
                skipped.add(added, number)
                continue
            values = _values(line, titles)
            if "." in values["id"]:  # a step of a job, of sacct
                continue
            state = values.get("state", "R").upper().partition(" ")[0]  # "CANCELLED by 1000"
            nodes = _names(assigned(values["nodes"]))
        except ScenarioError as error:
            problems += [problem.at(str(file), number) for problem in error.problems]
            continue
        if not nodes or state not in _PRESENT:
            waiting += 1
            continue
        texts = {key: printable(values[key]) for key in _TEXTS if key in values}
        job, _ = jobs_by_id.get(values["id"], (None, 0))
        job_of = replace(job, nodes=(*job.nodes, *nodes)) if job else SlurmJob(values["id"], nodes, **texts)
        jobs_by_id[job_of.id] = job_of, number
    if problems:
        raise ScenarioError(problems)
    jobs, at = (tuple(each) for each in zip(*jobs_by_id.values(), strict=True)) if jobs_by_id else ((), ())
    return JobList(jobs, at, waiting, skipped)


def _table(text: str, file: Path) -> tuple[int, list[str], list[tuple[int, str]]]:
    """The place of the first line of jobs, what the titles in front of it say each column holds, and all lines."""
    lines = list(content_lines(text))
    for at, (number, line) in enumerate(lines, 1):
        try:
            if titles := _titles(line):
                return at, titles, lines
        except ScenarioError as error:
            raise ScenarioError(problem.at(str(file), number) for problem in error.problems) from None
    return 0, [], lines


def _added(line: str) -> str | None:
    return added_by_paste(line, "(?:squeue|sacct)")


def _has_job(line: str, titles: Sequence[str]) -> bool:
    """Whether a line of a table with titles has a value for each of them, and the number of a job."""
    try:
        return bool(titles) and _values(line, titles)["id"][:1].isdigit()
    except ScenarioError:
        return False


def _titles(line: str) -> list[str]:
    """Read a line of titles: the key of each column, empty where it is not needed; nothing for another line."""
    headings = line.upper().rstrip("|").split("|") if "|" in line else line.upper().split()
    known = {title: key for key, titles in _TITLES.items() for title in titles}
    keys = [known.get(word.strip(), "") for word in headings]
    if "id" in keys and "nodes" not in keys:
        raise ScenarioError(Problem("line", "has titles, and none of a node list", line, "a column NODELIST"))
    return keys if {"id", "nodes"} <= set(keys) else []


def _values(line: str, titles: Sequence[str]) -> dict[str, str]:
    """The value of each column. Names of jobs may have blanks, and so may the reason why a job has no nodes."""
    if not titles:
        job, *nodes = line.split(maxsplit=1)
        if nodes and assigned(nodes[0]) and not is_list(nodes[0]):  # a name with blanks, as place --slurm prints it
            job, *nodes = line.rsplit(maxsplit=1)
        return {"id": job, "nodes": "".join(nodes)}
    if "|" in line:
        cells = [word.strip() for word in line.split("|")[: len(titles)]]
    else:
        head, bracket, reason = line.partition(" (") if titles[-1] == "nodes" else (line, "", "")
        cells = [*head.split(), *([f"({reason}"] if bracket else [])]
        extra, at = len(cells) - len(titles), titles.index("name") if "name" in titles else None
        if at is not None and extra > 0:
            cells[at : at + extra + 1] = [" ".join(cells[at : at + extra + 1])]
        elif titles[-1] == "nodes" and extra == -1:  # no list at all
            cells.append("")
    if len(cells) != len(titles):
        message = f"{plural(len(cells), 'value')} for {plural(len(titles), 'column')}"
        raise ScenarioError(Problem("line", message, line[:80]))
    return {key: word for key, word in zip(titles, cells, strict=True) if key}
