"""Demonstrates a workload of one's own: a ring in which every rank sends to the next.

    rank 0 --> rank 1 --> rank 2 --> ... --> rank n-1 --> rank 0

The class needs no registration: a scenario names it as "own_workload.py:Ring", and runs it with --allow-code.
"""

import fairlane
from fairlane.core.units import Size
from fairlane.model.workload import Rank, Workload


class Ring(Workload):
    """Every rank sends to the next and receives from the one before."""

    message_size: Size = 64 * 1024

    def communicate(self, rank: Rank, iteration: int) -> None:
        """One message to the next rank."""
        rank.irecv((rank.index - 1) % rank.ranks)
        rank.isend((rank.index + 1) % rank.ranks, self.message_size)
        rank.wait_all()


class Rows(Workload):
    """An allreduce in each row of four ranks."""

    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        """Set-up: a communicator of each row; a library that looks for itself; a barrier."""
        rank.comm_split(2, rank.index // 4, name="row")
        rank.collective("allreduce", 8, comm=1)
        rank.collective("barrier")
        rank.begin_timing()
        super().write(rank, stages)

    def communicate(self, rank: Rank, iteration: int) -> None:
        """One allreduce of the row."""
        rank.collective("allreduce", self.message_size, comm=2)


class Once(Workload):
    """Rank 0 sends to rank 1, and all ranks end."""

    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        """One message."""
        if rank.index == 0:
            rank.send(1, self.message_size)
        elif rank.index == 1:
            rank.recv(0)
        rank.mark_progress()


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
