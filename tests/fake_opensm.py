"""An OpenSM that does one thing: on SIGHUP it reads its QoS policy again and writes to its log, as OpenSM 3.3.23 does.

A policy with the word ``garbage`` is refused, with the lines that OpenSM writes, which reports SUBNET UP then as well.
With a file ``deaf`` in the folder it does not answer.
"""

import os
import signal
import sys
from pathlib import Path


def main() -> None:
    """Runs until it is killed."""
    folder = Path(sys.argv[1])
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    policy, log, loaded = folder / "qos-policy.conf", folder / "osm.log", folder / "loaded.conf"
    loaded.write_text(policy.read_text())
    log.write_text("0x02 -> SUBNET UP\n")
    (folder / "starting.pid").write_text(f"{os.getpid()}\n")
    (folder / "starting.pid").replace(folder / "opensm.pid")
    while True:
        signal.sigwait({signal.SIGHUP})
        if (folder / "deaf").exists():
            continue
        text = policy.read_text()
        with log.open("a") as out:
            if "garbage" in text or (folder / "refuses").exists():
                out.write("0x01 -> osm_qos_parse_policy_file: ERR AC03: Failed parsing QoS policy file\n")
            else:
                loaded.write_text(text)
            out.write("0x02 -> SUBNET UP\n")


if __name__ == "__main__":
    main()
