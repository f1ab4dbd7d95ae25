"""Demonstrates a workload of one's own: a ring in which every rank sends to the next.

    rank 0 --> rank 1 --> rank 2 --> ... --> rank n-1 --> rank 0

The class needs no registration: a scenario names it as "own_workload.py:Ring", and runs it with --allow-code.
"""

import fairlane
from fairlane.units import Size
from fairlane.workload import Rank, Workload


class Ring(Workload):
    """Every rank sends to the next and receives from the one before."""

    message_size: Size = 64 * 1024

    def communicate(self, rank: Rank, iteration: int) -> None:
        """One message to the next rank."""
        rank.irecv((rank.index - 1) % rank.ranks)
        rank.isend((rank.index + 1) % rank.ranks, self.message_size)
        rank.wait_all()


def main() -> None:
    """Runs two rings, one with small and one with large messages, and prints how far they got."""
    scenario = fairlane.Scenario(
        name="rings",
        fabric={"topology": "fat_tree", "hosts": 16, "levels": 2, "radix": 8, "bandwidth": "12.5 GB/s"},
        jobs=[
            fairlane.Job(name="small", ranks=8, workload=Ring(message_size="4 KiB", compute="5 us")),
            fairlane.Job(name="large", ranks=8, workload=Ring(message_size="1 MiB", compute="5 us")),
        ],
    )
    simulation = fairlane.Simulation(scenario)
    simulation.run_for("2 ms")
    for job, iterations in simulation.work().items():
        print(f"{job:6} {iterations:5} iterations in 2 ms")


if __name__ == "__main__":
    main()
