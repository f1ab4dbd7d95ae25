"""Demonstrates a controller of your own, in online mode: one simulation continues while service levels change.

observe(measurements of the last period) -> settings of the next one
"""

from pathlib import Path

from typing_extensions import override

import fairlane
from fairlane.sim.controller import Controller, Settings, Work, control


class LongestCompute(Controller):
    """Gives priority to the ranks of each job with the longest compute times."""

    @override
    def observe(self, work: Work) -> Settings:
        """Service level 1 with weight 4 for ranks above 80% of their job's longest compute time."""
        levels = {}
        for name, job in work.jobs.items():
            times = [compute / max(1, count) for compute, count in zip(job.compute, job.iterations, strict=True)]
            levels[name] = {rank: 1 for rank, time in enumerate(times) if time > 0.8 * max(times)}
        return Settings(levels, weights=(1, 4))


def main() -> None:
    """Four periods of 20 ms, the first without priorities."""
    file = Path(__file__).with_name("quickstart.toml")
    scenario = fairlane.Scenario.load(file, set=["placement.seed=3"])
    outcomes = list(control(scenario, LongestCompute(service_levels=2), mode="online", period="20 ms", periods=4))

    print("iterations in 80 ms, default -> with the controller:")
    for job in outcomes[0].treated.jobs:
        default = sum(outcome.default.jobs[job].work for outcome in outcomes if outcome.default)
        treated = sum(outcome.treated.jobs[job].work for outcome in outcomes)
        print(f"{job:10} {default:3} -> {treated:3}  {treated / default - 1:+6.1%}")


if __name__ == "__main__":
    main()
