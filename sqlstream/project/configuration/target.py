"""Chooses the target, and reads it as a value."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.alerts.build import build_alerts
from sqlstream.project.configuration.documents import ProjectDocument, TargetDocument
from sqlstream.project.configuration.trigger import interval_seconds
from sqlstream.project.metrics import MetricsSink
from sqlstream.project.values import RepositoryAddress, Target
from sqlstream.project.wording import did_you_mean, quoted, quoted_list
from sqlstream.project.yaml import YamlMapping, entries_at, locate, plain

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
        repositories=tuple(RepositoryAddress(each.url, each.username, each.password) for each in target.repositories),
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
