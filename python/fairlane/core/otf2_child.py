"""Reads an OTF2 archive in a process of its own: the C library that does so may loop, crash or allocate without end.

Run as ``python -P -m fairlane.core.otf2_child``. Standard input is JSON: ``trace``, ``options``, and the limits
``cpu_s`` and ``bytes``. Standard output is JSON: ``description``, or ``error`` and its ``kind``.
"""

import json
import resource
import sys

__all__ = ["main"]


def main() -> None:
    """Reads what standard input names, within its limits."""
    asked = json.loads(sys.stdin.read())
    resource.setrlimit(resource.RLIMIT_CPU, (asked["cpu_s"], asked["cpu_s"] + 1))
    resource.setrlimit(resource.RLIMIT_AS, (asked["bytes"], asked["bytes"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from fairlane.core import bridge
    from fairlane.core.errors import BuildError, RunError

    try:
        answer = {"description": bridge.describe_trace(asked["trace"], asked["options"])}
    except (BuildError, RunError) as error:
        answer = {"error": str(error), "kind": type(error).__name__}
    except MemoryError:
        answer = {"error": "more memory than allowed", "kind": "limit"}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
