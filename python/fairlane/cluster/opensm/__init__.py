"""QoS settings in the form of OpenSM, InfiniBand's subnet manager: written from scenarios and read into them."""

from fairlane.cluster.opensm.export import Exported, export, qos_table, share_notes
from fairlane.cluster.opensm.options import read_options
from fairlane.cluster.opensm.policy import Policy, read_policy
from fairlane.cluster.opensm.settings import Settings

__all__ = [
    "Exported",
    "Policy",
    "Settings",
    "export",
    "qos_table",
    "read_options",
    "read_policy",
    "share_notes",
]
