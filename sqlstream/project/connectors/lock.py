"""connectors.lock: the jars that a project uses, pinned by their checksums."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.connectors.connectors import Jar
from sqlstream.project.yaml import parse_yaml, plain

LOCK_FILE = "connectors.lock"

_HEADER = """\
# Written by `sqlstream deps`: the jars of each connector with their SHA-256, by version of Spark. Commit this file.
version: 1
spark:
"""
_COORDINATE = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+", re.ASCII)
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class ConnectorsLock:
    """The jars by minor version of Spark, then by connector; a target's `packages` are joined by spaces."""

    jars: Mapping[str, Mapping[str, tuple[Jar, ...]]] = field(default_factory=dict)

    def find(self, spark: str, name: str) -> tuple[Jar, ...] | None:
        """Returns the jars of a connector or of packages, None if the file does not have them."""
        return self.jars.get(spark, {}).get(name)

    def with_jars(self, spark: str, jars: Mapping[str, tuple[Jar, ...]]) -> ConnectorsLock:
        """Returns the lock with `jars` for one version of Spark. All other entries stay: other targets use them."""
        return ConnectorsLock({**self.jars, spark: {**self.jars.get(spark, {}), **jars}}) if jars else self

    def without(self, spark: str) -> ConnectorsLock:
        """Returns the lock without the jars for one version of Spark."""
        return ConnectorsLock({version: jars for version, jars in self.jars.items() if version != spark})


def lock_text(lock: ConnectorsLock) -> str:
    """Returns the text of the file, in a fixed order, so that a diff shows only what changed."""
    lines = [_HEADER.rstrip("\n")]
    for spark, connectors in sorted(lock.jars.items()):
        lines.append(f'  "{spark}":')
        for name, jars in sorted(connectors.items()):
            lines.append(f'    "{name}":')
            lines += [f"      {jar.coordinate}: {jar.sha256}" for jar in sorted(jars)]
    return "\n".join(lines) + "\n"


def read_lock(text: str) -> ConnectorsLock:
    """Returns the lock that `text` describes. Raises: FindingsError if it is not one, as after a bad merge."""
    content = plain(parse_yaml(text, LOCK_FILE))
    if not isinstance(content, dict) or content.get("version") != 1:
        raise _not_a_lock("it has no `version: 1`")
    versions = content.get("spark") or {}
    if not isinstance(versions, dict):
        raise _not_a_lock("`spark` is not a mapping")
    return ConnectorsLock({str(spark): _read_version(str(spark), names) for spark, names in versions.items()})


def _read_version(spark: str, names: object) -> dict[str, tuple[Jar, ...]]:
    if not isinstance(names, dict):
        raise _not_a_lock(f'"{spark}" is not a mapping')
    return {str(name): _read_jars(str(name), jars) for name, jars in names.items()}


def _read_jars(name: str, jars: object) -> tuple[Jar, ...]:
    if not isinstance(jars, dict) or not jars:
        raise _not_a_lock(f"`{name}` has no jars")
    for coordinate, digest in jars.items():
        if not _COORDINATE.fullmatch(str(coordinate)) or not _SHA256.fullmatch(str(digest)):
            raise _not_a_lock(f"`{coordinate}` is not a Maven coordinate with a SHA-256")
    return tuple(Jar(str(coordinate), str(digest)) for coordinate, digest in jars.items())


def _not_a_lock(problem: str) -> FindingsError:
    return FindingsError(
        [
            Finding(
                "connector-lock",
                f"{LOCK_FILE} cannot be read",
                problem,
                "restore the file from version control, or delete it and run `sqlstream deps`",
                Location(LOCK_FILE),
            )
        ]
    )
