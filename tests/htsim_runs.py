"""The benchmark ``benches/htsim.py``, and a flow with its settings."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

LATENCY, LINKS = 1_000_000, 6
"""Of a link, ps, and links of the longest path of the tree."""
BYTE = 80
"""Time of a byte on the wire, ps."""


def benchmark() -> ModuleType:
    """Loads the benchmark's module."""
    spec = spec_from_file_location("htsim", Path(__file__).parents[1] / "benches" / "htsim.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["htsim"] = module
    spec.loader.exec_module(module)
    return module


def document(htsim: ModuleType, **qos: Any) -> dict[str, Any]:
    """Host 0 sends 2 MB to host 13 of htsim's tree of 16 hosts, with its settings."""
    scenario: dict[str, Any] = htsim.SMALL.document({"name": "incast"}, spray=True, seed=1)
    workload = {"name": "incast", "messages_per_iteration": 1, "message_size": "2 MB", "compute": 0}
    job = {"name": "pair", "ranks": 2, "stop": 1, "placement": {"hosts": [13, 0]}, "workload": workload}
    return {**scenario, "jobs": [job], "qos": {**scenario["qos"], **qos}}
