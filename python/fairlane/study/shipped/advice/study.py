"""Alternatives simulated: co-running with neighbours and isolated, and the neighbours on their own.

A row of ``runs`` has the application's condition: its power cap, and what it shares with others, which is adapters and,
by lane weights, links. It is the basis of the ranking, and of the training of a model (``fairlane learn``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import polars as pl
from typing_extensions import override

from fairlane.core.errors import RunError
from fairlane.model.scenario import Resolved, Scenario
from fairlane.model.scenario.resolved import ResolvedJob
from fairlane.study.shipped.advice.measure import MEASURED, change, pace, simulate
from fairlane.study.shipped.advice.question import Choice, Point, Question
from fairlane.study.shipped.advice.results import COVERAGE, Advice, ranked
from fairlane.study.shipped.base import Measurement, Row, ShippedStudy
from fairlane.study.tasks.task import Answer, Stopwatch, read

UNCAPPED_W = 115.0
"""Power in the table where nothing caps a job: the greatest of a socket of the Catalyst study, W."""
MS = 1e-9
"""Milliseconds in a picosecond."""


class Alternatives(ShippedStudy[Advice]):
    """All alternatives of a question with ``seeds`` seeds; and again with as many others, for a check.

    ``check`` is the length of the simulations of the check. Raises ``ScenarioError`` if it is no duration.
    """

    results, noun, by_model = Advice, "advice", False

    def __init__(
        self, question: Question, seeds: int = 3, check: str | None = None, workers: int | None = None
    ) -> None:
        self.question, self.scenario, self.length, self.wanted_workers = question, question.scenario, check, workers
        self.seeds = range(1, seeds + 1)
        self._points: dict[tuple[Choice, int, str | None], Point] = {}
        if check is not None:
            question.point(question.choices[0], seeds + 1, check)

    @override
    def measurements(self) -> Iterator[Measurement]:
        yield from self.advised()
        if self.length is not None:
            count = len(self.seeds)
            yield from self.simulations(self.question.choices, range(1 + count, 1 + 2 * count), self.length)

    def advised(self) -> Iterator[Measurement]:
        """The simulations that the advice is based on."""
        return self.simulations(self.question.choices, self.seeds)

    def simulations(
        self, choices: Sequence[Choice], seeds: Sequence[int], length: str | None = None
    ) -> Iterator[Measurement]:
        """Yield the simulations of alternatives, each once.

        The service level makes no difference to the isolated run; nor do the adapters to that without the application.
        """
        once: dict[str, Measurement] = {}
        head = {} if length is None else {"length": length}
        for choice in choices:
            for seed in seeds:
                isolated: dict[str, Any] = {**head, "rails": choice.rails, "placement": choice.placement}
                runs = [{"run": "isolated", **isolated}]
                if len(self._point(isolated, seed).pinned.names) > 1:
                    without = {**head, "run": "without", "placement": choice.placement}
                    runs += [without, {"run": "co-run", **isolated, "service_level": choice.service_level}]
                for run in runs:
                    task = Measurement(self, run, seed)
                    once.setdefault(task.digest, task)
        yield from once.values()

    def _point(self, condition: Mapping[str, Any], seed: int) -> Point:
        """The alternative of a condition; the first one where it makes no difference."""
        first = self.question.choices[0]
        rails, level = condition.get("rails", first.rails), condition.get("service_level", first.service_level)
        key = (Choice(rails, level, condition["placement"]), seed, condition.get("length"))
        if key not in self._points:
            self._points[key] = self.question.point(*key)
        return self._points[key]

    @override
    def at(self, condition: Mapping[str, Any], seed: int) -> Scenario:
        pinned, application = self._point(condition, seed).pinned, self.question.number
        others = [job for job in range(len(pinned.names)) if job != application]
        of_run = {"co-run": pinned, "isolated": pinned.isolated(application), "without": pinned.only(others)}
        return read(of_run[condition["run"]])

    @override
    def measure(self, condition: Mapping[str, Any], seed: int, watch: Stopwatch) -> Answer:
        return simulate(self.at(condition, seed), {}, watch)

    @override
    def described(self) -> dict[str, Any]:
        return {**super().described(), "job": self.question.name}

    @override
    def summary(self) -> dict[str, Any]:
        return {"coverage": COVERAGE, "by_model": self.by_model, "check": self.length}

    @override
    def tables_of(self, rows: Sequence[Row]) -> dict[str, pl.DataFrame]:
        advised, checked = ([row for row in rows if ("length" in row) == check] for check in (False, True))
        runs, long = self.runs_of(advised), self.runs_of(checked)
        alone = len(self._point(asdict(self.question.choices[0]), self.seeds[0]).pinned.names) == 1
        ranking, check = (ranked(self.question.choices, table, alone=alone) for table in (runs, long))
        return dict(zip(Advice.TABLES, (runs.drop_nulls("run_time_ms"), ranking, long, check), strict=True))

    def runs_of(self, rows: Sequence[Row]) -> pl.DataFrame:
        """The table ``runs`` of answers. Raises ``RunError`` if none has two iterations of the application."""
        without = {(row["placement"], row["seed"]): row for row in rows if row["run"] == "without"}
        of_application = [row for row in rows if row["run"] != "without"]
        marks = self._marks(of_application)
        runs = []
        for row in of_application:
            neighbours = without.get((row["placement"], row["seed"])) if row["run"] == "co-run" else None
            if row["run"] == "co-run" and neighbours is None:  # interrupted
                continue
            utilisation = None if neighbours is None else neighbours["mean_switch_utilisation"]
            runs.append(
                {
                    **condition(self.question, self._point(row, row["seed"]), utilisation),
                    **self._measured(row, marks),
                    **(self.of_neighbours(row, neighbours) if neighbours else {}),
                }
            )
        if runs and all(row["run_time_ms"] is None for row in runs):
            message = "fewer than two iterations in the length of a simulation; make it longer"
            raise RunError(f"{self.question.name}: {message}", slug="limit")
        return Advice.table("runs", runs)

    def _application(self, row: Row) -> Row:
        job: Row = next(job for job in row["jobs"] if job["job"] == self.question.name)
        return job

    def _marks(self, rows: Sequence[Row]) -> int | None:
        """Return the number of marks that all simulations of a trace with two or more have; None for a workload."""
        if self.question.scenario.jobs[self.question.at].trace is None:
            return None
        counts = [len(self._application(row)["last"]) for row in rows]
        return min((count for count in counts if count > 1), default=None)

    def _measured(self, row: Row, marks: int | None) -> Row:
        """The application's features for one of its iterations; None where it has not done two."""
        job = self._application(row)
        time = pace(job, marks)
        always = {"iterations": len(job["last"]), "digest": row["digest"]}
        if time is None:
            return {**dict.fromkeys(MEASURED), **always}
        part = time / job["span"]
        return {
            "run_time_ms": time * MS,
            "computing_ms": job["computing"] * part * MS,
            "network_ms": job["network"] * part * MS,
            "late_partner_ms": job["late_partner"] * part * MS,
            "self_queueing_ms": job["own"] * part * MS,
            "messages": job["messages"] * part,
            "kilobytes": job["bytes"] * part * 1e-3,
            "collective_share": job["collective_share"],
            "host_utilisation": row["host_utilisation"],
            "switch_utilisation": row["switch_utilisation"],
            **always,
        }

    def of_neighbours(self, co_run: Row, without: Row) -> Row:
        """The mean change of the neighbours' rates by the application, and the fewest of their iterations."""
        pairs = [(job, other) for job in co_run["jobs"] for other in without["jobs"] if job["job"] == other["job"]]
        changes = [by for job, other in pairs if (by := change(job, other)) is not None]
        return {
            "neighbours": sum(changes) / len(changes) if changes else None,
            "neighbour_iterations": min(len(job["mean"]) for pair in pairs for job in pair),
        }


def condition(question: Question, point: Point, utilisation: float | None) -> dict[str, Any]:
    """The columns of an alternative in a table of runs.

    ``utilisation`` is the neighbours' mean utilisation of links; None for the application isolated.
    """
    job = point.decided.jobs[question.number]
    adapters = _adapters(job, question.rails)
    co_run = utilisation is not None
    others = [other for at, other in enumerate(point.decided.jobs) if at != question.number] if co_run else []
    theirs = {rail for other in others for rail in _adapters(other, question.rails)}
    return {
        "case": question.scenario.name,
        "application": job.workload,
        "rails": point.choice.rails,
        "placement": point.choice.placement,
        "seed": point.seed,
        "cap_w": UNCAPPED_W if job.power is None or job.power.cap is None else job.power.cap,
        "adapters": len(adapters) / question.rails,
        "co_scheduled": question.scenario.name if co_run else None,
        "service_level": point.choice.service_level if co_run else None,
        "link_share": link_share(point.decided, question.number) if co_run else None,
        "adapters_shared": len(adapters & theirs) / len(adapters),
        "interference_utilisation": utilisation or 0.0,
    }


def _adapters(job: ResolvedJob, rails: int) -> set[int]:
    """The adapters that a job sends through."""
    policy = job.rails or {}
    if policy.get("only") is not None:
        return {int(policy["only"])}
    return set(policy.get("ranks") or range(rails))


def weights(resolved: Resolved) -> list[float] | None:
    """The weights of the lanes; None for an arbiter that has no weights."""
    lanes = max(resolved.tables["qos"]["sl2vl"]) + 1
    arbiter = resolved.tables["qos"].get("arbiter") or {}
    listed = arbiter.get("params", {}).get("weights")
    if listed is not None:
        return [float(weight) for weight in listed]
    return [1.0] if lanes == 1 else None


def link_share(resolved: Resolved, number: int) -> float:
    """A job's share of a link that all jobs want: its lane's by weight, divided by the number of jobs in the lane.

    Arbiters without weights share equally here, which is right for one lane only.
    """
    levels = resolved.tables["qos"]["sl2vl"]
    lanes = [levels[job.service_level or 0] for job in resolved.jobs]
    by_lane = weights(resolved) or [1.0] * (max(levels) + 1)
    whole = sum(by_lane[lane] for lane in set(lanes))
    lane: int = lanes[number]
    return float(by_lane[lane] / whole / lanes.count(lane))
