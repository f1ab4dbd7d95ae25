"""What Slurm reads: lists of hosts with brackets, and ``topology.conf``."""

from fairlane.slurm.hostlist import can_hold, compress, expand
from fairlane.slurm.topology import host_names, of_wiring, switch_names, topology_conf

__all__ = ["can_hold", "compress", "expand", "host_names", "of_wiring", "switch_names", "topology_conf"]
