"""What a signal leaves behind."""

import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fairlane.core.signals import deferred_signals, exit_on_sigterm, temporary_folder


@pytest.mark.parametrize(("number", "raised"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)])
def test_signals_take_effect_at_the_end_of_the_block(number: signal.Signals, raised: type[BaseException]) -> None:
    done = []

    def work() -> None:
        with deferred_signals():
            signal.raise_signal(number)
            signal.raise_signal(number)
            done.append("whole")

    with exit_on_sigterm():
        with pytest.raises(raised):
            work()
        assert done == ["whole"]
        with pytest.raises(raised):  # the handlers are those of before
            signal.raise_signal(number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_folder_is_removed_though_a_signal_arrives_meanwhile(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, removed = shutil.rmtree, []

    def interrupted(path: str, **_: object) -> None:
        signal.raise_signal(number)
        remove(path)
        removed.append(path)

    monkeypatch.setattr(shutil, "rmtree", interrupted)
    with pytest.raises((SystemExit, KeyboardInterrupt)), exit_on_sigterm(), temporary_folder("made-", tmp_path) as made:
        (made / "file").write_text("words")
    assert removed == [str(made)]
    assert list(tmp_path.iterdir()) == []


def test_a_signal_in_the_block_ends_it_and_removes_the_folder(tmp_path: Path) -> None:
    code = (
        "import signal, sys, pathlib\n"
        "from fairlane.core.signals import exit_on_sigterm, temporary_folder\n"
        "with exit_on_sigterm(), temporary_folder('made-', pathlib.Path(sys.argv[1])) as made:\n"
        "    (made / 'file').touch()\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "    print('not reached')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (143, b"", b"")
    assert list(tmp_path.iterdir()) == []


def test_other_threads_may_defer() -> None:
    done = []

    def work() -> None:
        with deferred_signals():
            done.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [True]


def test_a_signal_before_the_wait_ends_it_whatever_threads_there_are() -> None:
    lines = [
        "import os, signal, threading",
        "from fairlane.core.signals import awaited_signals",
        "threading.Thread(target=threading.Event().wait, daemon=True).start()",
        "with awaited_signals() as wait:",
        "    os.kill(os.getpid(), signal.SIGTERM)",
        "    wait()",
        "print('ended')",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "ended\n")
