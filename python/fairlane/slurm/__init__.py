"""Names of hosts as Slurm has them: lists with brackets, and what a name may be. ``topology.conf`` is in ``fabric``."""

from fairlane.slurm.hostlist import can_hold, compress, expand, in_order, shortened, slurm_names

__all__ = ["can_hold", "compress", "expand", "in_order", "shortened", "slurm_names"]
