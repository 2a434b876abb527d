"""Whether a process runs in CI or in a container, whose files nobody keeps for the next run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

MARKS = ("/.dockerenv", "/run/.containerenv")
"""Files that Docker and Podman leave in each container."""

VARIABLES = ("KUBERNETES_SERVICE_HOST", "container")
"""Set by Kubernetes, and by Podman, LXC and systemd-nspawn."""

CGROUPS = "/proc/1/cgroup"
_CONTAINER = re.compile(r"docker|kubepods|containerd|libpod|lxc")

NOT_CI = ("", "0", "false")
"""Values of CI that mean no."""


def is_unattended(env: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Returns whether `env` and the file system below `root` are those of CI or of a container."""
    if env.get("CI", "").lower() not in NOT_CI or any(env.get(name) for name in VARIABLES):
        return True
    if any((root / mark.lstrip("/")).exists() for mark in MARKS):
        return True
    with suppress(OSError):
        return bool(_CONTAINER.search((root / CGROUPS.lstrip("/")).read_text(encoding="utf-8", errors="replace")))
    return False
