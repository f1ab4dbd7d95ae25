"""Demonstrates changing service levels while jobs run: the slowest job gets the lane with the greater weight.

5 ms as it is --+--> 20 ms as it is
                +--> 20 ms with service level 1 for one job

The quick start's fabric is tapered here, so that there is more to gain, and more for the others to lose.
"""

from pathlib import Path

import fairlane


def main() -> None:
    """Forks the quick start after 5 ms and treats one of the two."""
    file = Path(__file__).with_name("quickstart.toml")
    default = fairlane.Simulation(fairlane.Scenario.load(file, set=["fabric.leaf_up=4"]))
    default.run_for("5 ms")

    slowest = min(default.work().items(), key=lambda item: item[1])[0]
    treated = default.fork()
    treated.set_service_levels({slowest: dict.fromkeys(range(8), 1)})
    for simulation in (default, treated):
        simulation.run_for("20 ms")

    print(f"iterations, when {slowest} gets service level 1:")
    for job, iterations in default.work().items():
        more = treated.work()[job] / iterations - 1
        print(f"{job:10} {iterations:3} -> {treated.work()[job]:3}  {more:+6.1%}")


if __name__ == "__main__":
    main()
