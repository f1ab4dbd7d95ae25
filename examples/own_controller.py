"""Demonstrates a controller of one's own, on a simulation that goes on while levels change.

observe(work of the last period) -> settings of the next one
"""

from pathlib import Path

from typing_extensions import override

import fairlane
from fairlane.controller import Controller, Settings, Work, control


class LongestCompute(Controller):
    """Ranks that compute nearly as long as the longest of their job go first: they have the least time to lose."""

    @override
    def observe(self, work: Work) -> Settings:
        """Level 1, with four packets a turn."""
        levels = {}
        for name, job in work.jobs.items():
            times = [compute / max(1, count) for compute, count in zip(job.compute, job.iterations, strict=True)]
            levels[name] = {rank: 1 for rank, time in enumerate(times) if time > 0.8 * max(times)}
        return Settings(levels, weights=(1, 4))


def main() -> None:
    """Four periods of 20 ms; the first one is without priorities."""
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
