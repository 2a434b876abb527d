"""The peak memory of the process."""

from __future__ import annotations

import re
from pathlib import Path


def peak_megabytes() -> float:
    """Returns the peak memory of this process (Linux: `VmHWM`, which each program resets).

    `ru_maxrss` is not correct, because a new program inherits it from the process that started it.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024
