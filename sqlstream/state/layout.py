"""The paths of a query's checkpoint, ledger and output under a target's storage."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from sqlstream.project.files.paths import join

CHECKPOINT = "/checkpoint"
LEDGER_NAME = "ledger.json"
VERSIONS_NAME = "versions.json"
SNAPSHOT_NAME = "_snapshot"
"""The file in each complete snapshot that contains the snapshot's name. Readers ignore names that begin with `_`."""
_VERSION = re.compile(r"v([1-9][0-9]*)\Z")


def query_root(storage: str, query_id: str, checkpoint: str | None) -> str:
    """Returns the folder of a query's versions: `queries/<id>` under `storage`, or the configured `checkpoint`."""
    return join(storage, checkpoint or f"queries/{query_id}").rstrip("/")


def lock_path(root: str) -> str:
    """Returns the file that locks `root` for one process: the folder of a version, or `versions_root`."""
    return f"{root}.lock"


def lease_path(root: str) -> str:
    """Returns the folder of files that lock `root` for one process, on storage without file locks."""
    return f"{root}.lease"


def remote_query_path(root: str) -> str:
    """Returns the file that says in which session of a Spark Connect server the query of the version in `root` runs."""
    return f"{root}.remote.json"


def versions_root(root: str) -> str:
    """Returns what a command locks while it changes which version of a query is current."""
    return f"{root}/versions"


def versions_path(root: str) -> str:
    """Returns the file that says which version of a query is current."""
    return f"{root}/{VERSIONS_NAME}"


def version_root(root: str, version: int) -> str:
    """Returns the folder of version `version` (from 1) of a query."""
    return f"{root}/v{version}"


def checkpoint_path(root: str, version: int) -> str:
    """Returns the folder that Spark gets as the checkpoint location."""
    return f"{version_root(root, version)}{CHECKPOINT}"


def archive_path(root: str, version: int, moment: str) -> str:
    """Returns the archive folder of a run for a version. `moment` is its name."""
    return f"{archives_path(root, version)}/{moment}"


def archive_moment() -> str:
    """Returns the current time (UTC) as the name of an archive folder."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}"


def archives_path(root: str, version: int) -> str:
    """Returns the folder of all archives of a version."""
    return f"{version_root(root, version)}/archive"


def ledger_path(root: str, version: int) -> str:
    """Returns the path of the ledger, beside the checkpoint."""
    return f"{version_root(root, version)}/{LEDGER_NAME}"


def completion_path(root: str, version: int) -> str:
    """Returns the path of the file that says that a version of a batch model has written its whole output."""
    return f"{version_root(root, version)}/complete.json"


def output_path(storage: str, path: str) -> str:
    """Returns the path under which readers find the output of a query, see `app/versions/publications.py`."""
    return join(storage, path).rstrip("/")


def output_table(name: str, version: int, *, is_published: bool = False) -> str:
    """Returns the table to which version `version` of a query writes: version n to `<name>_vn`, and version 1 to the
    plain one until another version is published there, see `Versions.published`.
    """
    return name if version == 1 and not is_published else beside_table(name, f"v{version}")


def beside_table(name: str, what: str) -> str:
    """Returns the table `<name>_<what>` in the same schema."""
    # The suffix belongs inside the quotes of the last part.
    quote = name[-1] if name.endswith(("`", '"')) else ""
    return f"{name.removesuffix(quote)}_{what}{quote}"


def writing_folder(output: str) -> str:
    """Returns the folder in which batches write the next `output`, each batch in a new subfolder.

    Spark ignores names that begin with `_` when it lists data.
    """
    parent, _, name = output.rpartition("/")
    return f"{parent}/_writing/{name}"


def snapshot_folder(output: str) -> str:
    """Returns the folder of the snapshots of a query in complete mode, whose output is at the path `output`."""
    parent, _, name = output.rpartition("/")
    return f"{parent}/_snapshots/{name}"


def published_folder(output: str, version: int) -> str:
    """Returns the folder that readers of the path `output` see while `version` is the current one."""
    parent, _, name = output.rpartition("/")
    return f"{parent}/_published/{name}/v{version}"


def archive_folder(output: str) -> str:
    """Returns the folder of the earlier outputs of a batch model that writes to `output`, numbered 1, 2, 3."""
    parent, _, name = output.rpartition("/")
    return f"{parent}/_archive/{name}"


def version_number(folder: str) -> int | None:
    """Returns the version of a folder with this name, None for other names."""
    match = _VERSION.match(folder)
    return int(match.group(1)) if match else None
