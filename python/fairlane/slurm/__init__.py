"""What Slurm reads: lists of hosts with brackets, and ``topology.conf``."""

from fairlane.slurm.hostlist import compress, expand, shortened
from fairlane.slurm.names import can_hold, slurm_names
from fairlane.slurm.topology import host_names, of_wiring, switch_names, topology_conf

__all__ = [
    "can_hold",
    "compress",
    "expand",
    "host_names",
    "of_wiring",
    "shortened",
    "slurm_names",
    "switch_names",
    "topology_conf",
]
