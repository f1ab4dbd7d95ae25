"""Network tests with a transport on an assignment of hosts: isolated, or with congestion."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from fairlane.core.drive import Engine
from fairlane.core.tables import marks
from fairlane.gpcnet.plan import NetworkTest, Plan
from fairlane.tasks.task import Answer, Stopwatch, digest_of

_TESTED = 0  # number of the job that is measured


@dataclass(frozen=True)
class Trial:
    """The task that measures one network test. Isolated and congested trials of a seed have the same hosts."""

    plan: Plan
    transport: str
    test: NetworkTest
    congested: bool
    seed: int

    @property
    def label(self) -> str:
        """A name for people."""
        kind = "congested" if self.congested else "isolated"
        return f"{self.transport}, {self.test.name}, {kind}, seed {self.seed}"

    @property
    def cost(self) -> float:
        """About how long it takes, compared with others."""
        return (10.0 if self.congested else 1.0) * self.test.part

    @property
    def digest(self) -> str:
        """The same for those that have the same answer, in one benchmark."""
        return digest_of([self.transport, self.test.name, self.congested, self.seed])

    @property
    def description(self) -> Mapping[str, Any]:
        """Its scenario, with the congestors."""
        scenario = self.plan.at(self.transport, self.test, self.seed)
        return scenario.model_dump(mode="json", exclude_defaults=True, exclude_none=True)

    def compute(self, watch: Stopwatch) -> Answer:
        """Simulates until every rank has its iterations, or the time is over. Raises ``RunError``."""
        plan = self.plan
        with watch.lap("set-up"):
            resolved = plan.at(self.transport, self.test, self.seed).resolve()
            engine = (resolved if self.congested else resolved.alone(_TESTED)).engine()
        wanted = self.test.iterations(plan.iterations)

        def done(engine: Engine) -> bool:
            found = min(engine.progress()[_TESTED])
            watch.reached(min(1.0, found / (wanted + 1)))
            return found > wanted

        with watch.lap("simulating"):
            watch.advance(engine, plan.duration, plan.duration, done)
        found = marks(engine).filter(pl.col("job") == _TESTED).sort("rank", "iteration")
        least = min(engine.progress()[_TESTED])
        times = found.filter(pl.col("iteration").is_between(2, least))["elapsed"].to_numpy()
        mean, worst = self.test.measured(times) if len(times) else (None, None)
        count = {"iterations": max(0, least - 1), "samples": len(times)}
        return {"mean": mean, "p99": worst, **count, "digest": engine.digest()}
