"""Connectors and their jars, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class Jar:
    """One file in a Maven repository: its coordinate `group:artifact:version`, and the SHA-256 of its bytes."""

    coordinate: str
    sha256: str

    @property
    def path(self) -> str:
        """The path of the file in a Maven repository."""
        group, artifact, version = self.coordinate.split(":")
        return f"{group.replace('.', '/')}/{artifact}/{version}/{self.name}"

    @property
    def name(self) -> str:
        """The name of the file."""
        _, artifact, version = self.coordinate.split(":")
        return f"{artifact}-{version}.jar"


@dataclass(frozen=True)
class ConnectorRelease:
    """The jars of a connector for one minor version of Spark.

    `stands_in` is the version of the release if it was made for an earlier Spark and works on this one too; it is
    empty for a release that was made for this Spark.
    """

    jars: tuple[str, ...]
    stands_in: str = ""


@dataclass(frozen=True)
class Connector:
    """A connector: its releases by minor version of Spark, such as `4.3`.

    `any_spark` are the jars of a connector that does not depend on Spark's version, such as a JDBC driver. `follows`
    says whether a later Spark can use the newest release; otherwise a release works only with its own Spark.
    `settings` are those of a session that uses it; `per_core` are settings that a local session sets to its cores.
    `artifact` is the start of the artifact's name, for a connector without releases.
    """

    name: str
    title: str
    releases: Mapping[str, ConnectorRelease]
    any_spark: tuple[str, ...] = ()
    follows: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    per_core: tuple[str, ...] = ()
    artifact: str = ""

    def release_for(self, spark: str) -> ConnectorRelease | None:
        """Returns the release for a minor version of Spark, None if there is no release that works."""
        if self.any_spark:
            return ConnectorRelease(self.any_spark)
        if spark in self.releases:
            return self.releases[spark]
        newest = max(self.releases, key=_numbers, default="")
        if not newest or not self.follows or _numbers(spark) < _numbers(newest):
            return None
        jars = self.releases[newest].jars
        return ConnectorRelease(jars, jars[0].rpartition(":")[2])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
