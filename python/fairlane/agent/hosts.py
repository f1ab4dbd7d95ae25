"""The hosts of the fabric, by the names of Slurm's nodes."""

from fairlane.agent.config import AgentConfig
from fairlane.errors import Problem, ScenarioError
from fairlane.fabric import Fabric


class Hosts:
    """The fabric of a configuration, and which of its hosts is which node."""

    def __init__(self, config: AgentConfig) -> None:
        self.fabric = Fabric.build(config.fabric.spec)
        self._nodes: dict[str, str] = dict(config.slurm.pairs())
        self._known = frozenset(self.fabric.host_names)

    def named(self, node: str) -> str:
        """The name that a node's host has, known or not."""
        return self._nodes.get(node, node)

    def of(self, node: str) -> str:
        """The host of a node; raises ``ScenarioError`` if the fabric does not have it."""
        found = self.named(node)
        if found not in self._known:
            names = self.fabric.host_names
            problem = Problem.unknown("slurm.hosts", "host of the fabric", found, names[:20], found)
            raise ScenarioError(problem)
        return found
