"""Demonstrates the effect of placement: the same jobs packed under few switches, spread over many, and at random."""

from pathlib import Path

import fairlane


def main() -> None:
    """Runs the quick start's jobs for 5 ms in each placement."""
    file = Path(__file__).with_name("quickstart.toml")
    for strategy in ("packed", "spread", "random"):
        scenario = fairlane.Scenario.load(file, set=[f"placement.strategy={strategy}"])
        simulation = fairlane.Simulation(scenario)
        simulation.run_for("5 ms")
        print(f"{strategy:8} {sum(simulation.work().values()):4} iterations of all jobs")


if __name__ == "__main__":
    main()
