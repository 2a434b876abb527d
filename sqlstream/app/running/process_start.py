"""Which process a run is, so that another one that was given its number later is not taken for it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

BOOT = Path("/proc/sys/kernel/random/boot_id")


def process_start(pid: int) -> str | None:
    """Returns a text that no other process on any machine has: the start of process `pid`. None where there is no such
    process, or it has ended and only its entry is left.

    On Linux it says the boot of the machine, the space of process numbers (a container has its own) and the clock tick;
    elsewhere the second in which the process began.
    """
    if not BOOT.exists():
        return _listed_start(pid)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    state, ticks = fields[0], fields[19]  # proc(5): the 3rd and the 22nd field
    return None if state in "ZX" else f"{machine()}/{ticks}"


def machine() -> str:
    """Returns what process numbers of other machines, boots and containers do not have in common with those here."""
    try:
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - Path would read the link as a path
        return f"{BOOT.read_text(encoding='ascii').strip()}/{space}"
    except OSError:
        return ""


def _listed_start(pid: int) -> str | None:
    try:
        listed = subprocess.run(  # noqa: S603 - nothing of the user's
            ["/bin/ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return listed.stdout.strip() or None
