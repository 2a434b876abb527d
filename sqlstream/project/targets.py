"""A target, as frozen values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlstream.location import Location
from sqlstream.project.alerts import NO_ALERTS, Alerts
from sqlstream.project.metrics import MetricsSink
from sqlstream.project.secrets import OptionValue


@dataclass(frozen=True)
class RepositoryAddress:
    """A Maven repository of a target: an http(s) URL or a folder, and the user and password for it."""

    url: OptionValue
    username: OptionValue = ""
    password: OptionValue = ""

    def values(self) -> tuple[OptionValue, ...]:
        """Returns all parts, any of which can name secrets."""
        return (self.url, self.username, self.password)


@dataclass(frozen=True)
class Target:
    """Where Spark runs, and where data and checkpoints are stored. `threads` is the number of queries that run at once
    if they end by themselves. `max_streams` is the greatest number of other queries that can start together.
    `metrics` is the sink for the metrics of runs, `alerts` are the alerts of the project.
    """

    name: str
    master: str
    storage: str
    spark: Mapping[str, OptionValue]
    packages: tuple[str, ...]
    location: Location
    remote: str | None = None
    threads: int = 4
    max_streams: int = 100
    repositories: tuple[RepositoryAddress, ...] = ()
    metrics: MetricsSink | None = None
    alerts: Alerts = NO_ALERTS

    @property
    def resolves_in_spark(self) -> bool:
        """Whether Spark itself resolves `packages`, because `spark` configures its Ivy."""
        return any(name.startswith(("spark.jars.ivy", "spark.jars.repo", "spark.jars.excl")) for name in self.spark)

    @property
    def is_local(self) -> bool:
        """Whether all of Spark runs on this machine: `local`, `local[4]`, or the workers of `local-cluster[2,1,1024]`.
        Only for targets without `remote`.
        """
        return re.match(r"local($|\[|-cluster\[)", self.master) is not None
