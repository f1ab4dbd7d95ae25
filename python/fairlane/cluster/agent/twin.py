"""The digital twin: the jobs that run now on the fabric, simulated, and settings tried ahead on forks of it.

A replicate is a simulation with a seed of its own, in which every job begins at a random time in the first half of the
warm-up: the twin does not know how far the real jobs are. It has the settings in force. A candidate is a fork of it
in which one job's service level is changed; it is compared with a fork without a change over the same simulated time,
so both have the same jobs, seeds and history.

A job's change is ``t_0(k) / t_c(k) - 1``, with ``k`` the last iteration that it completed in both forks, and ``t`` the
time from the fork to its end. Of an open-loop load, which has no iterations, it is that of the mean latency of the
messages delivered since the fork, ``l_0 / l_c - 1``. The estimate is the mean over replicates with Student's interval.

*The traffic of a job from port counters of its hosts: how much each sends.* Counters say how much a host sends, and not
to whom: destinations are random ranks of the same job, at random times. A job that is modelled so loads links like the
real one on average; what it suffers is seen in the latency of its messages, because its load does not wait for
anything.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.cluster.agent.config import AgentConfig, Profile
from fairlane.cluster.agent.decision import Candidate, Prediction
from fairlane.cluster.agent.jobs import Settings
from fairlane.cluster.agent.processes import Hosts
from fairlane.cluster.agent.system import AgentError
from fairlane.core.errors import FairlaneError, Problem, ScenarioError
from fairlane.core.seeds import LARGEST_SEED, Purpose, stream
from fairlane.core.statistics import Estimate, independent
from fairlane.core.tables import Work
from fairlane.core.wording import plural
from fairlane.inputs.hosts import SlurmJob
from fairlane.model.scenario import Scenario
from fairlane.results.milestones import Milestones, milestones
from fairlane.sim.simulation import Simulation

_SEEDS = 2**32  # between the seeds of two replicates: workloads derive seeds from theirs


@dataclass(frozen=True)
class TwinJob:
    """A job that the twin simulates."""

    job: SlurmJob
    hosts: tuple[str, ...]
    """The names of its hosts on the fabric, one for each node."""
    profile: Profile


@dataclass(frozen=True)
class _Seen:
    """Work of one job in one fork, since the fork."""

    times: Milestones | None
    latency: float | None
    """Mean latency of its messages, ps."""


class Twin:
    """Forks of one warmed-up simulation for each replicate. ``update`` comes first, then ``predict``."""

    def __init__(
        self, config: AgentConfig, clock: Callable[[], float] = time.monotonic, hosts: Hosts | None = None
    ) -> None:
        self._config = config
        self._clock = clock
        self._hosts = hosts or Hosts(config)
        self.fabric = self._hosts.fabric
        self._jobs: tuple[TwinJob, ...] = ()
        self._levels: dict[str, int] = {}
        self._replicates: list[Simulation] = []

    def model(self, jobs: Mapping[str, SlurmJob]) -> tuple[list[TwinJob], dict[str, str]]:
        """The jobs that it can simulate, and why it cannot simulate the others, by number.

        One job that cannot be simulated says nothing about the others. Jobs that share a host are left out, because a
        level belongs to hosts: that of one would be that of both.
        """
        owners: dict[str, list[str]] = {}
        for job in jobs.values():
            for node in job.nodes:
                owners.setdefault(self._hosts.named(node), []).append(job.id)
        models, left_out = [], {}
        for job in jobs.values():
            try:
                models.append(self._modelled(job, owners))
            except FairlaneError as error:
                left_out[job.id] = str(error).splitlines()[0]
        return models, left_out

    def _modelled(self, job: SlurmJob, owners: Mapping[str, Sequence[str]]) -> TwinJob:
        """One job; raises ``ScenarioError`` if it cannot be simulated."""
        profile = next((profile for profile in self._config.profile if profile.fits(job)), None)
        if profile is None:
            raise ScenarioError(Problem("", "no profile fits it"))
        hosts = tuple(self._hosts.of(node) for node in job.nodes)
        for host in hosts:
            if others := [other for other in owners[host] if other != job.id]:
                message = f"shares host {host} with job {others[0]}: a level set for one would apply to both"
                raise ScenarioError(Problem("", message))
        modelled = TwinJob(job, hosts, profile)
        self._table(modelled)  # raises for a trace, samples of counters, or ranks that do not fit
        return modelled

    def update(self, jobs: Sequence[TwinJob], settings: Settings, deadline: float = inf) -> None:
        """Makes it simulate these jobs with these settings. The same jobs go on from where they are.

        Raises ``ScenarioError``, ``BuildError`` or ``RunError`` if they cannot be simulated, and ``AgentError`` if that
        takes until after the deadline, of ``time.monotonic``.
        """
        levels = {simulation.job: simulation.level for simulation in settings}
        twin = self._config.twin
        if tuple(jobs) != self._jobs or not self._replicates:
            self._jobs, self._replicates = (), []
            made = []
            for number in range(twin.replicates):
                made.append(self._warmed_up(jobs, levels, number))
                if self._clock() > deadline:
                    message = (
                        f"{number + 1} of {plural(twin.replicates, 'simulation')} warmed up within twin.time_limit"
                    )
                    raise AgentError(message)
            self._jobs, self._levels, self._replicates = tuple(jobs), levels, made
            return
        changed = [job for job in self._names() if levels.get(job) != self._levels.get(job)]
        if changed:
            for simulation in self._replicates:
                for job in changed:
                    simulation.set_job_service_level(job, levels.get(job))
                simulation.run_for(twin.warm_up)
        self._levels = levels

    def candidates(self) -> list[Candidate]:
        """Every change of one job's level; of the jobs with the most hosts first, at most ``policy.max_candidates``."""
        changes = []
        for job in sorted(self._jobs, key=lambda job: (-len(job.hosts), job.job.id)):
            now = self._levels.get(job.job.id)
            changes += [Candidate(job.job.id, level) for level in (None, *self._config.policy.levels) if level != now]
        return changes[: self._config.policy.max_candidates]

    def predict(self, candidates: Sequence[Candidate], deadline: float = inf) -> list[Prediction]:
        """Predict the changes by each candidate. Raises ``RunError`` if a simulation cannot go on.

        After the deadline, of ``time.monotonic``, none is tried any more: there are predictions of the first ones only.
        """
        if not candidates or not self._jobs:
            return []
        baselines = [self._ahead(simulation, None) for simulation in self._replicates]
        predictions: list[Prediction] = []
        for candidate in candidates:
            changes: list[dict[str, float]] = []
            for simulation, baseline in zip(self._replicates, baselines, strict=True):
                if self._clock() > deadline:
                    return predictions
                ahead = self._ahead(simulation, candidate)
                pairs = {job: _change(baseline[job], ahead[job]) for job in baseline}
                changes.append({job: change for job, change in pairs.items() if change is not None})
            made = _prediction(candidate, changes, self._names())
            predictions += [] if made is None else [made]
        return predictions

    def _names(self) -> list[str]:
        return [job.job.id for job in self._jobs]

    def _warmed_up(self, jobs: Sequence[TwinJob], levels: Mapping[str, int], number: int) -> Simulation:
        """One replicate after the warm-up."""
        twin = self._config.twin
        seed = (twin.seed + number * _SEEDS) % (LARGEST_SEED + 1)
        scenario = self._scenario(jobs, levels, seed)
        made = Simulation(scenario, threads=twin.threads)
        made.run_for(twin.warm_up)
        return made

    def _scenario(self, jobs: Sequence[TwinJob], levels: Mapping[str, int], seed: int) -> Scenario:
        config = self._config
        tables = []
        for job in jobs:
            begin = stream(seed, Purpose.VARIANT, int(job.job.id)).integers(config.twin.warm_up // 2 + 1)
            tables.append({**self._table(job), "start": f"{int(begin)} ps", "service_level": levels.get(job.job.id)})
        qos = config.qos
        if qos.sl2vl is None and qos.service_levels is None:
            qos = qos.model_copy(update={"service_levels": 1 + max(qos.default, *config.policy.levels)})
        with config.reading():
            return Scenario(
                name="twin",
                seed=seed,
                duration=f"{config.twin.warm_up * 2 + config.twin.horizon} ps",
                fabric=config.fabric,
                network=config.network,
                mpi=config.mpi,
                qos=qos,
                jobs=tables,
            )

    def _table(self, job: TwinJob) -> dict[str, Any]:
        """The job's table in the twin's scenario."""
        profile, nodes = job.profile, len(job.hosts)
        ranks = nodes * profile.ranks_per_host if profile.trace is None else int(profile.trace.describe()["ranks"])
        needed = -(-ranks // profile.ranks_per_host)
        if needed > nodes:
            held = nodes * profile.ranks_per_host
            message = f"the trace of job {job.job.id} has {ranks} ranks, and its nodes hold {held}"
            raise ScenarioError(Problem("profile.ranks_per_host", message, profile.ranks_per_host))
        if profile.workload is not None and (wrong := profile.workload.problem_with(ranks)):
            raise ScenarioError(Problem("profile.workload", f"has {plural(ranks, 'rank')} in this job", allowed=wrong))
        placement = {"hosts": list(job.hosts[:needed]), "ranks_per_host": profile.ranks_per_host}
        table: dict[str, Any] = {"name": job.job.id, "placement": placement}
        if profile.trace is not None:
            return {**table, "trace": profile.trace}
        return {**table, "ranks": ranks, "workload": self._workload(job)}

    def _workload(self, job: TwinJob) -> Any:
        profile = job.profile
        if profile.counters is None:
            return profile.workload
        numbers = self.fabric.host_numbers(list(job.hosts))
        bandwidth = float(self.fabric.bandwidths_of_hosts()[numbers].mean())
        load = load_of(read_rates(profile.counters), job.hosts, bandwidth, profile.counters)
        if load <= 0:
            message = f"the hosts of job {job.job.id} sent nothing"
            raise ScenarioError(Problem.of_file(profile.counters, message, allowed="samples from while it runs"))
        return {"name": "open_loop", "load": load, "message_size": f"{profile.message_size} B"}

    def _ahead(self, simulation: Simulation, candidate: Candidate | None) -> dict[str, _Seen]:
        """Return the work of each job from here on, with a candidate's change."""
        fork = simulation.fork()
        before = _latencies(fork)
        if candidate is not None:
            fork.set_job_service_level(candidate.job, candidate.level)
        begin = fork.now
        fork.run_for(self._config.twin.horizon)
        reached, after = milestones(Work.of(fork.engine)), _latencies(fork)
        seen = {}
        for number, job in enumerate(fork.scenario.jobs):
            times = _since(reached[number], begin) if job.iterates else None
            count, total = (now - then for now, then in zip(after[number], before[number], strict=True))
            seen[job.name] = _Seen(times, total / count if count and not job.iterates else None)
        return seen


def _latencies(simulation: Simulation) -> list[tuple[float, float]]:
    """Messages delivered so far and the sum of their latencies, ps, by job."""
    table = simulation.table("latency").filter(pl.col("of") == "message")
    total = (pl.col("count") * pl.col("mean_ps")).sum().alias("total")
    sums = table.group_by("job").agg(pl.col("count").sum(), total)
    by_job = {job: (float(count), float(latency)) for job, count, latency in sums.iter_rows()}
    return [by_job.get(number, (0.0, 0.0)) for number in range(len(simulation.jobs))]


def _since(milestones: Milestones, begin: int) -> Milestones:
    """The iterations that were completed after an instant, with times from it."""
    before = sum(time <= begin for time in milestones.times)
    times = [time - begin for time in milestones.times[before:]]
    ended = None if milestones.ended is None else milestones.ended - begin
    return Milestones(milestones.stride, times, milestones.stride * len(times), ended)


def _change(baseline: _Seen, ahead: _Seen) -> float | None:
    """The relative change of one job; None if it did nothing in one of both."""
    if baseline.times is not None and ahead.times is not None:
        if baseline.times.ended is not None and ahead.times.ended is not None:
            return baseline.times.ended / ahead.times.ended - 1 if ahead.times.ended > 0 else None
        count = min(len(baseline.times.times), len(ahead.times.times))
        return baseline.times.times[count - 1] / ahead.times.times[count - 1] - 1 if count else None
    if baseline.latency and ahead.latency:
        return baseline.latency / ahead.latency - 1
    return None


def _prediction(
    candidate: Candidate, replicates: Sequence[Mapping[str, float]], jobs: Sequence[str]
) -> Prediction | None:
    """The estimates over replicates; None if no job did anything."""
    means = [sum(effects.values()) / len(effects) for effects in replicates if effects]
    gain = independent(means)
    if gain is None:
        return None
    everywhere = [job for job in jobs if all(job in effects for effects in replicates)]
    unknown = tuple(job for job in jobs if job not in everywhere)
    return Prediction(candidate, gain, dict(_effects(replicates)), unknown)


def _effects(replicates: Sequence[Mapping[str, float]]) -> Iterator[tuple[str, Estimate]]:
    for job in dict.fromkeys(job for effects in replicates for job in effects):
        estimate = independent([effects[job] for effects in replicates if job in effects])
        if estimate is not None:
            yield job, estimate


COLUMNS = ("time_s", "host", "sent_bytes")


def read_rates(file: Path) -> dict[str, float]:
    """Bytes per second that each host sent, from the first to the last sample.

    Raises ``ScenarioError`` if the file is not as described in ``Profile.counters``.
    """
    try:
        table = pl.read_csv(file, schema_overrides={"time_s": pl.Float64, "host": pl.String, "sent_bytes": pl.Float64})
    except (OSError, pl.exceptions.PolarsError) as error:
        message = f"cannot be read as CSV: {str(error).partition(chr(10))[0]}"
        raise ScenarioError(Problem.of_file(file, message, allowed=f"columns {', '.join(COLUMNS)}")) from None
    if lacking := [name for name in COLUMNS if name not in table.columns]:
        raise ScenarioError(Problem.of_file(file, f"has no column {lacking[0]}", allowed=", ".join(COLUMNS)))
    table = table.drop_nulls(COLUMNS).sort("time_s")
    change = [pl.col(name).last() - pl.col(name).first() for name in ("time_s", "sent_bytes")]
    found = table.group_by("host").agg(*change, least=pl.col("sent_bytes").diff().min())
    rates: dict[str, float] = {}
    for host, seconds, sent, least in found.select("host", "time_s", "sent_bytes", "least").iter_rows():
        if not seconds or (least is not None and least < 0):
            message = "has one sample only" if not seconds else "has a counter that goes back"
            raise ScenarioError(Problem.of_file(file, f"host {host}: {message}", allowed="two samples that grow"))
        rates[host] = sent / seconds
    return rates


def load_of(rates: Mapping[str, float], hosts: Sequence[str], bandwidth: float, file: Path) -> float:
    """The mean load of a job's hosts, as a share of ``bandwidth`` (bits per second) of a host's link.

    Raises ``ScenarioError`` if a host has no samples, or sent more than its link can carry.
    """
    lacking = [host for host in hosts if host not in rates]
    if lacking:
        unknown = Problem.unknown("host", "host in the counters", lacking[0], list(rates), lacking[0])
        raise ScenarioError(unknown.at(str(file), None))
    load = sum(rates[host] for host in hosts) * 8 / (bandwidth * len(hosts))
    if load > 1:
        message = f"its hosts sent {load:.2f} times what their links can carry"
        raise ScenarioError(
            Problem.of_file(file, message, allowed="counters in bytes, and the bandwidth of the fabric")
        )
    return load
