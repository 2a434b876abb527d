"""The project before an upgrade: with an older text of one model, or at an older commit."""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

from sqlstream.app.loading.load import LoadAttempt, try_load
from sqlstream.app.request import ProjectRequest
from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.files.files import find_project_root
from sqlstream.project.unit_tests.documents import UpgradeDocument
from sqlstream.project.values import ModelFile
from sqlstream.project.wording import quoted


def load_older_project(
    request: ProjectRequest, file: ModelFile, upgrade: UpgradeDocument, place: Location
) -> LoadAttempt:
    """Returns the compiled older project, or a finding at `place` if git does not have it."""
    alone = replace(request, partial_parse=False)
    if upgrade.sql is not None:
        return try_load(alone, inline=replace(file, text=upgrade.sql))
    with tempfile.TemporaryDirectory(prefix="sqlstream-upgrade-") as folder:
        problem = _check_out(find_project_root(request.folder), upgrade.git or "", Path(folder))
        if problem is not None:
            what = f"git has no project at {quoted(upgrade.git)}"
            fix = "use a commit, branch or tag that contains it; a shallow clone lacks older commits"
            return LoadAttempt(None, (Finding("unit-test-upgrade", what, f"git reports: {problem}", fix, place),))
        return try_load(replace(alone, folder=Path(folder)))


def _check_out(root: Path, commit: str, folder: Path) -> str | None:
    """Extracts the project at `root`, as of `commit`, into `folder`. Returns git's error message, or None."""
    try:
        prefix = _git(root, "rev-parse", "--show-prefix").decode().strip()
        archive = _git(root, "archive", "--format=tar", f"{commit}:{prefix}" if prefix else commit)
    except OSError as error:
        return str(error)
    except subprocess.CalledProcessError as error:
        said: str = error.stderr.decode(errors="replace").strip()
        return said.splitlines()[-1] if said else str(error)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return None


def _git(root: Path, *arguments: str) -> bytes:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=True)  # noqa: S603, S607 - the git on the user's PATH
    return done.stdout
