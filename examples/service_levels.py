"""Demonstrates changing service levels while jobs run: the slowest job gets the lane with the greater weight.

2 ms as it is --+--> 10 ms as it is
                +--> 10 ms with service level 1 for one job
"""

from pathlib import Path

import fairlane


def main() -> None:
    """Forks the quick start after 2 ms and treats one of the two."""
    scenario = fairlane.Scenario.load(Path(__file__).with_name("quickstart.toml"))
    default = fairlane.Simulation(scenario)
    default.run_for("2 ms")

    treated = default.fork()
    slowest = min(default.work().items(), key=lambda item: item[1])[0]
    treated.set_service_levels({slowest: dict.fromkeys(range(8), 1)})
    for simulation in (default, treated):
        simulation.run_for("10 ms")

    print(f"{slowest} gets service level 1")
    for job, before in default.work().items():
        after = treated.work()[job]
        print(f"{job:12} {before:4} iterations, then {after:4}: {after / before - 1:+6.1%}")


if __name__ == "__main__":
    main()
