"""Where a query's checkpoint, ledger and output lie under a target's storage."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from sqlstream.project.files.paths import join

LEDGER_NAME = "ledger.json"
HOLD_NAME = "run.lock"
_VERSION = re.compile(r"v([1-9][0-9]*)\Z")


def query_root(storage: str, query_id: str, checkpoint: str | None) -> str:
    """Returns the folder of a query's versions: `queries/<id>` under `storage`, or the configured `checkpoint`."""
    return join(storage, checkpoint or f"queries/{query_id}").rstrip("/")


def hold_path(root: str) -> str:
    """Returns the file of a query that a run has for itself while it goes on."""
    return f"{root}/{HOLD_NAME}"


def version_root(root: str, version: int) -> str:
    """Returns the folder of version `version` (from 1) of a query."""
    return f"{root}/v{version}"


def checkpoint_path(root: str, version: int) -> str:
    """Returns the folder that Spark gets as the checkpoint location."""
    return f"{version_root(root, version)}/checkpoint"


def archive_path(root: str, version: int, moment: str) -> str:
    """Returns the folder for what is put aside of a version at a `moment`, which is a part of the name."""
    return f"{archives_path(root, version)}/{moment}"


def archive_moment() -> str:
    """Returns the present moment (UTC) as the name of a folder for what is put aside."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}"


def archives_path(root: str, version: int) -> str:
    """Returns the folder of all that was put aside of a version."""
    return f"{version_root(root, version)}/archive"


def ledger_path(root: str, version: int) -> str:
    """Returns the ledger's file, beside the checkpoint."""
    return f"{version_root(root, version)}/{LEDGER_NAME}"


def output_path(storage: str, path: str, version: int) -> str:
    """Returns where version `version` of a query writes: version 1 to the plain path, version n to `<path>.vn`.

    A new checkpoint must never share its predecessor's output folder, because Spark's file sink then skips batches in
    silence.
    """
    plain = join(storage, path).rstrip("/")
    return plain if version == 1 else f"{plain}.v{version}"


def output_table(name: str, version: int) -> str:
    """Returns the table that version `version` of a query writes: version 1 the plain one, version n `<name>_vn`."""
    return name if version == 1 else beside_table(name, f"v{version}")


def beside_table(name: str, what: str) -> str:
    """Returns the table `<name>_<what>` of the same schema."""
    return f"{name.removesuffix('`')}_{what}{'`' if name.endswith('`') else ''}"


def writing_folder(output: str) -> str:
    """Returns the folder in which a batch write makes what is to become `output`, each in a folder of its own.

    Spark passes over names that begin with `_` where it looks for data.
    """
    parent, _, name = output.rpartition("/")
    return f"{parent}/_writing/{name}"


def archive_folder(output: str) -> str:
    """Returns the folder of the earlier outputs of a batch model that writes to `output`, in the order 1, 2, 3."""
    parent, _, name = output.rpartition("/")
    return f"{parent}/_archive/{name}"


def version_number(folder: str) -> int | None:
    """Returns the version that a folder's name stands for, or None for any other name."""
    match = _VERSION.match(folder)
    return int(match.group(1)) if match else None
