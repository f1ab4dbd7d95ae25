"""What takes exported settings back: OpenSM's own defaults, written out.

Without ``qos_`` options, or with ``qos FALSE``, OpenSM leaves the tables of ports as they are; only other tables
replace them. Paths that are set up already keep their service level, which OpenSM's default maps to the lane of that
number.
"""

from fairlane.opensm.options import default_options
from fairlane.opensm.policy import DEFAULT, Policy, write_policy

REVERT = "revert"
"""The folder of the files."""
_STEPS = (
    "Takes back what opensm.conf in the folder above has set: OpenSM's defaults. Removing lines, or restarting OpenSM",
    "without them, leaves the tables of all ports as they are. Instead:",
    "1. In OpenSM's configuration, replace the lines that were added by those below, or by those that were there",
    "   before, if all five qos_ options were set. Copy qos-policy.conf to {policy}.",
    "2. Have OpenSM read them: kill -HUP $(pidof opensm). Where max_op_vls has changed, do so again after SUBNET UP.",
    "3. Verify ports of a host and of a switch, by LID and port: smpquery vlarb LID PORT; smpquery sl2vl LID PORT.",
    "   SL n has lane n (of fewer lanes the low bits); VL0 has weight 4 in the high table, the others in the low one.",
    "   fairlane sm check --revert does this on a simulated subnet, for all ports.",
    "4. Remove TaskProlog, PrologSlurmctld and EpilogSlurmctld of the exported scripts from slurm.conf, and env/*.sh",
    "   from job scripts. Jobs that run keep their service level until they end.",
    "5. Now the lines may be removed from OpenSM's configuration, too.",
)


def revert_files(policy_file: str) -> dict[str, str]:
    """The text of each file; ``policy_file`` is the policy's path on OpenSM's machine."""
    steps = "".join(f"# {line.format(policy=policy_file)}\n" for line in _STEPS)
    policy = write_policy(Policy((), {DEFAULT: 0}, ()), ("OpenSM's default: service level 0 for all paths",))
    return {f"{REVERT}/opensm.conf": steps + default_options(policy_file), f"{REVERT}/qos-policy.conf": policy}
