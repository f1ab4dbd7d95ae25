"""Packet-hops per CPU second of the quick start's eight jobs together.

With 1 and with 16 service levels, and what the counters and the interference matrix cost: the runs are taken in turn in
this process. Usage: ``python benches/quickstart.py``.
"""

import time
from pathlib import Path

import fairlane

QUICKSTART = Path(__file__).parent.parent / "examples" / "quickstart.toml"
DURATION = "20 ms"
ROUNDS = 5


def nanoseconds_per_hop(scenario: fairlane.Scenario, levels: int) -> float:
    """CPU time of a packet-hop, after the set-up. Ranks take the service levels in turn."""
    simulation = fairlane.Simulation(scenario)
    if levels > 1:
        simulation.set_service_levels({job: {rank: rank % levels for rank in range(8)} for job in simulation.jobs})
    start = time.process_time_ns()
    simulation.run_for(DURATION)
    return (time.process_time_ns() - start) / simulation.packet_hops


def main() -> None:
    """Prints one row per case, each the best of several rounds taken in turn."""
    plain = fairlane.Scenario.load(QUICKSTART)
    blind = fairlane.Scenario.load(QUICKSTART, set=["observe.counters=false"])
    many = fairlane.Scenario.load(QUICKSTART, set=["qos.service_levels=16", "qos.arbiter.weights=1"])
    cases = [(plain, 1), (blind, 1), (many, 16)]
    rounds = [[nanoseconds_per_hop(*case) for case in cases] for _ in range(ROUNDS)]
    observed, unobserved, sixteen = (min(column) for column in zip(*rounds, strict=True))
    print(f"quick start, counters on        {1e3 / observed:6.2f} Mhops/s  {observed:6.1f} ns/hop")
    print(f"quick start, counters off       {1e3 / unobserved:6.2f} Mhops/s  {unobserved:6.1f} ns/hop")
    print(f"quick start, 16 service levels  {1e3 / sixteen:6.2f} Mhops/s  {sixteen:6.1f} ns/hop")
    print(f"cost of the counters: {100 * (observed / unobserved - 1):.1f} %")
    print(f"speed with 16 service levels: {observed / sixteen:.2f} of that with 1")


if __name__ == "__main__":
    main()
