"""The memory that a measured process has had at its peak."""

from __future__ import annotations

import re
from pathlib import Path


def peak_megabytes() -> float:
    """Returns the most memory that this process has held at once (Linux: `VmHWM`, which starts anew with each program).

    `ru_maxrss` does not tell: in a new program it starts at the peak of the process that started it.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024
