"""Names and identifies the process of a run, so that a later process with the same number is not mistaken for it."""

from __future__ import annotations

import os
import socket
import subprocess
from datetime import UTC, datetime
from pathlib import Path

BOOT = Path("/proc/sys/kernel/random/boot_id")


def process_start(pid: int) -> str | None:
    """Returns the start of process `pid`, a text that no other process on any machine has. Returns None if there is no
    such process, or it is a zombie.

    On Linux the text has the boot id of the machine, the PID namespace (containers have their own) and the clock tick.
    On other systems it has the second of the start.
    """
    if not BOOT.exists():
        return _listed_start(pid)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    state, ticks = fields[0], fields[19]  # proc(5): the 3rd and the 22nd field
    return None if state in "ZX" else f"{machine_id()}/{ticks}"


def machine_id() -> str:
    """Returns the boot id and the PID namespace, which differ between machines, boots and containers."""
    try:
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - Path would read the link as a path
        return f"{BOOT.read_text(encoding='ascii').strip()}/{space}"
    except OSError:
        return ""


def _listed_start(pid: int) -> str | None:
    try:
        listed = subprocess.run(  # noqa: S603 - no input from the user
            ["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return listed.stdout.strip() or None


def this_process() -> str:
    """Returns this process and its host for messages, with the current time."""
    return f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"


def is_this_process(holder: str | None) -> bool:
    """Returns whether the holder of a lock or lease, as `this_process` names it, is this process of this host."""
    return holder is not None and holder.partition(", since")[0] == this_process().partition(", since")[0]
