"""Chooses the target, and reads it as a value, with its alerts or those of the project."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.alerts import NO_ALERTS, Alerts, Channel, Webhook
from sqlstream.project.configuration.alerts import ChannelDocument
from sqlstream.project.configuration.documents import ProjectDocument, Repository, TargetDocument
from sqlstream.project.configuration.trigger import interval_seconds
from sqlstream.project.configuration.validate import Path
from sqlstream.project.metrics import MetricsSink
from sqlstream.project.secrets import OptionValue
from sqlstream.project.wording import did_you_mean, quoted, quoted_list
from sqlstream.project.yaml import YamlMapping, entries_at, locate, plain


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
    repositories: tuple[Repository, ...] = ()
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


DEFAULT_TARGET = "local"
"""The target of a project that declares none, and the choice among several without a default."""

DEFAULT_MASTER = "local[*]"
"""Spark on all cores of this machine."""

_COORDINATE = re.compile(r"[\w.-]+:[\w.-]+:[\w.-]+", re.ASCII)


@dataclass(frozen=True)
class RequestedTarget:
    """The name of the requested target, if any. `named_by` is the origin of the name, such as `--target`."""

    name: str | None
    named_by: str


def choose_target(project: YamlMapping, requested: RequestedTarget, findings: list[Finding]) -> str | None:
    """Returns the name of the target to use: the requested one, else `default_target`, else the only one or `local`.

    Returns None and adds to `findings` if the target does not exist. `project` is project.yml with its default
    rendered.
    """
    names = target_names(project)
    default = project.get("default_target")
    default_name = None if default is None else plain(default)
    if requested.name:
        name, why = requested.name, f"{requested.named_by} names it"
    elif default_name is not None:
        name, why = str(default_name), "`default_target` names it"
    else:
        name = names[0] if len(names) == 1 else DEFAULT_TARGET
        why = "it is the default if neither --target nor `default_target` is set"
    if name in names:
        return name
    place = "targets" if requested.name else "default_target"
    findings.append(_unknown_target(name, why, names, locate(project, (place,))))
    return None


def target_names(project: YamlMapping) -> tuple[str, ...]:
    """Returns the names of the project's targets in the order of the file."""
    return tuple(entry.key for entry in entries_at(project, ("targets",))) or (DEFAULT_TARGET,)


def build_target(name: str, document: ProjectDocument, project: YamlMapping, findings: list[Finding]) -> Target:
    """Returns the target as a value, and adds to `findings` if its keys contradict each other."""
    target = document.targets.get(name) or TargetDocument()
    location = locate(project, ("targets", name))
    if target.master and target.remote:
        findings.append(_two_places(name, locate(project, ("targets", name, "remote"))))
    if target.remote and not target.remote.startswith("sc://"):
        findings.append(_not_connect(target.remote, locate(project, ("targets", name, "remote"))))
    for index, package in enumerate(target.packages):
        if not _COORDINATE.fullmatch(package):
            findings.append(_not_a_coordinate(package, locate(project, ("targets", name, "packages", index))))
    return Target(
        name=name,
        master=target.master or DEFAULT_MASTER,
        storage=target.storage or f".sqlstream/{name}",
        spark=target.spark,
        packages=target.packages,
        location=location,
        remote=target.remote,
        threads=target.threads,
        max_streams=target.max_streams,
        metrics=_metrics_sink(name, document, project),
        alerts=build_alerts(name, document, project, findings),
        repositories=target.repositories,
    )


def _metrics_sink(name: str, document: ProjectDocument, project: YamlMapping) -> MetricsSink | None:
    """Returns the sink for metrics: that of the target, or else of the project."""
    target = document.targets.get(name) or TargetDocument()
    metrics = target.metrics or document.metrics
    if metrics is None:
        return None
    path = ("targets", name, "metrics", "sink") if target.metrics else ("metrics", "sink")
    return MetricsSink(metrics.sink, interval_seconds(metrics.interval), locate(project, path))


def _unknown_target(name: str, why: str, names: tuple[str, ...], location: Location) -> Finding:
    return Finding(
        "unknown-target",
        f"there is no target {quoted(name)}",
        f"{why}; the targets of project.yml are {quoted_list(names)}",
        did_you_mean(name, names),
        location,
    )


def _two_places(name: str, location: Location) -> Finding:
    return Finding(
        "invalid-value",
        f"the target {quoted(name)} sets both `master` and `remote`",
        "Spark either runs on a master in this process, or is a Spark Connect server elsewhere",
        "remove one of them",
        location,
    )


def _not_connect(remote: str, location: Location) -> Finding:
    return Finding(
        "invalid-value",
        f"`remote` cannot be {quoted(remote)}",
        "it must be the address of a Spark Connect server; for a standalone or other cluster, use `master`",
        "for example, use `sc://host:15002`, or the key `master`",
        location,
    )


def _not_a_coordinate(package: str, location: Location) -> Finding:
    return Finding(
        "invalid-value",
        f"`packages` cannot contain {quoted(package)}",
        "packages need Maven coordinates, group:artifact:version",
        "for example, use `org.apache.spark:spark-avro_2.13:4.1.1`",
        location,
    )


def build_alerts(target: str, document: ProjectDocument, project: YamlMapping, findings: list[Finding]) -> Alerts:
    """Returns the alerts of a target, or else of the project. Adds to `findings` if two channels have the same name, or
    several are sinks.
    """
    own = (document.targets.get(target) or TargetDocument()).alerts
    alerts = own or document.alerts
    if alerts is None:
        return NO_ALERTS
    path: Path = ("targets", target, "alerts") if own else ("alerts",)
    channels = tuple(_channel(each, project, (*path, "notify", index)) for index, each in enumerate(alerts.notify))
    findings.extend(_wrong_channels(channels))
    rules = alerts.rules.by_kind if alerts.rules is not None else {}
    return Alerts(
        rules=rules,
        places={kind: locate(project, (*path, "rules", str(kind))) for kind in rules},
        channels=channels,
        repeat_seconds=None if alerts.repeat is None else interval_seconds(alerts.repeat),
    )


def _channel(channel: ChannelDocument, project: YamlMapping, path: Path) -> Channel:
    webhook = None
    if channel.webhook is not None:
        webhook = Webhook(channel.webhook, channel.format, channel.headers, channel.routing_key or "")
    return Channel(
        name=channel.name,
        location=locate(project, (*path, "sink" if channel.sink else "name")),
        webhook=webhook,
        command=channel.command or (),
        sink=channel.sink,
        timeout_seconds=interval_seconds(channel.timeout),
    )


def _wrong_channels(channels: tuple[Channel, ...]) -> list[Finding]:
    findings: list[Finding] = []
    names: set[str] = set()
    has_sink = False
    for channel in channels:
        if channel.name in names:
            findings.append(_twice(channel))
        if channel.sink is not None and has_sink:
            findings.append(_second_sink(channel))
        names.add(channel.name)
        has_sink = has_sink or channel.sink is not None
    return findings


def _twice(channel: Channel) -> Finding:
    return Finding(
        "duplicate-name",
        f"two entries of `notify` have the name {quoted(channel.name)}",
        "alerts that are not delivered yet are kept under the name of their entry",
        "rename one of them",
        channel.location,
    )


def _second_sink(channel: Channel) -> Finding:
    return Finding(
        "invalid-value",
        f"{quoted(channel.name)} is a second sink for alerts",
        "runs write the rows of alerts to one sink",
        "keep one of the two; a query can copy its rows to other sinks",
        channel.location,
    )
