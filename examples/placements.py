"""Demonstrates the effect of placement: the same jobs packed under few switches, spread over many, and at random.

    spine     [ 4 switches ]        packed: a job stays under one leaf switch
               ||||  ...  ||||      spread: all its messages cross the spine
    leaves    [8 down, 4 up] x 8    random: most of them do

The fabric is tapered: half as many cables go up from a leaf switch as go down to hosts.
"""

import fairlane

WORKLOADS = ("flood_pairs", "nearest_neighbor", "random_pairs", "all_to_all")


def main() -> None:
    """Runs two jobs of each workload for 20 ms in each placement."""
    for strategy in ("packed", "random", "spread"):
        scenario = fairlane.Scenario(
            name=strategy,
            fabric={"topology": "fat_tree", "hosts": 64, "radix": 16, "leaf_up": 4, "bandwidth": "3.2 GB/s"},
            placement={"name": strategy},
            jobs=[
                {"name": name, "count": 2, "ranks": 8, "workload": {"name": name, "compute": "0.5 ms"}}
                for name in WORKLOADS
            ],
        )
        simulation = fairlane.Simulation(scenario)
        simulation.run_for("20 ms")
        work = simulation.work()
        print(f"{strategy:7} {sum(work.values()):4} iterations of all jobs, the slowest {min(work.values())}")


if __name__ == "__main__":
    main()
