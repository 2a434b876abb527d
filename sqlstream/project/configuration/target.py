"""Chooses the target, and reads it as a value, with its alerts or those of the project."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import ConfigDict

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.alerts import AlertsDocument, Channel
from sqlstream.project.configuration.documents import ProjectDocument, TargetDocument
from sqlstream.project.configuration.validate import Path
from sqlstream.project.wording import did_you_mean, quoted, quoted_list
from sqlstream.project.yaml import YamlMapping, entries_at, locate, plain

DEFAULT_TARGET = "local"
"""The target of a project that declares none, and the choice among several without a default."""

DEFAULT_MASTER = "local[*]"
"""Spark on all cores of this machine."""


class Target(TargetDocument):
    """Where Spark runs, and where data and checkpoints are stored. `metrics` and `alerts` are those of the target, or
    else of the project. `places` has the locations of `metrics.sink`, of each `alerts.rules.<kind>`, and of each
    `alerts.notify.<name>`.
    """

    model_config = ConfigDict(defer_build=True)

    name: str
    location: Location
    master: str = DEFAULT_MASTER
    storage: str = ""
    alerts: AlertsDocument = AlertsDocument()
    locations: Mapping[str, Location] = {}

    def location_of(self, key: str) -> Location:
        """Returns the location of one of the keys in `places`, or else of the target."""
        return self.locations.get(key, self.location)

    @property
    def resolves_in_spark(self) -> bool:
        """Whether Spark itself resolves `packages`, because `spark` configures its Ivy."""
        return any(name.startswith(("spark.jars.ivy", "spark.jars.repo", "spark.jars.excl")) for name in self.spark)

    @property
    def is_local(self) -> bool:
        """Whether all of Spark runs on this machine: `local`, `local[4]`, or the workers of `local-cluster[2,1,1024]`.
        Only for targets without `remote`.
        """
        return is_local_master(self.master)


def is_local_master(master: str) -> bool:
    """Returns whether all of Spark runs on this machine with this `master`."""
    return re.match(r"local($|\[|-cluster\[)", master) is not None


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
    name = requested.name or default_target(project)
    if requested.name:
        why = f"{requested.named_by} names it"
    elif project.get("default_target") is not None:
        why = "`default_target` names it"
    else:
        why = "it is the default if neither --target nor `default_target` is set"
    if name in names:
        return name
    place = "targets" if requested.name else "default_target"
    findings.append(_unknown_target(name, why, names, locate(project, (place,))))
    return None


def default_target(project: YamlMapping) -> str:
    """Returns the name of the target to use if none is requested. The project may not have it."""
    default, names = project.get("default_target"), target_names(project)
    if default is not None:
        return str(plain(default))
    return names[0] if len(names) == 1 else DEFAULT_TARGET


def target_names(project: YamlMapping) -> tuple[str, ...]:
    """Returns the names of the project's targets in the order of the file."""
    return tuple(entry.key for entry in entries_at(project, ("targets",))) or (DEFAULT_TARGET,)


def build_target(name: str, document: ProjectDocument, project: YamlMapping, findings: list[Finding]) -> Target:
    """Returns the target as a value, and adds to `findings` if its keys contradict each other."""
    target = document.targets.get(name) or TargetDocument()
    location = locate(project, ("targets", name))
    if target.master and target.remote:
        findings.append(_two_places(name, locate(project, ("targets", name, "remote"))))
    if target.remote and not str(target.remote).startswith("sc://"):
        findings.append(_not_connect(str(target.remote), locate(project, ("targets", name, "remote"))))
    if target.ui_url and not re.fullmatch(r"https?://[^\s/?#]+[^\s?#]*", target.ui_url):
        findings.append(_not_a_page(target.ui_url, locate(project, ("targets", name, "ui_url"))))
    for index, package in enumerate(target.packages):
        if not _COORDINATE.fullmatch(package):
            findings.append(_not_a_coordinate(package, locate(project, ("targets", name, "packages", index))))
    metrics, alerts = target.metrics or document.metrics, target.alerts or document.alerts or AlertsDocument()
    below: Path = ("targets", name)
    places = {
        **_locations_of_alerts(alerts, project, below if target.alerts else (), findings),
        **({"remote": locate(project, ("targets", name, "remote"))} if target.remote else {}),
        "metrics.sink": locate(project, (*(below if target.metrics else ()), "metrics", "sink")),
    }
    return Target.model_construct(
        **{
            **vars(target),
            "name": name,
            "location": location,
            "master": target.master or DEFAULT_MASTER,
            "storage": target.storage or f".sqlstream/{name}",
            "metrics": metrics,
            "alerts": alerts,
            "locations": places,
            **{key: {} for key in ("vars", "sources", "sinks")},  # they are merged into what they override
        }
    )


def _locations_of_alerts(
    alerts: AlertsDocument, project: YamlMapping, above: Path, findings: list[Finding]
) -> dict[str, Location]:
    """Returns the locations of rules, and of channels by name: that of the sink, or of the name. Adds to `findings` if
    two channels have the same name, or several are sinks.
    """
    places = {f"alerts.rules.{kind}": locate(project, (*above, "alerts", "rules", kind)) for kind in alerts.by_kind}
    has_sink = False
    for index, channel in enumerate(alerts.notify):
        location = locate(project, (*above, "alerts", "notify", index, "sink" if channel.sink else "name"))
        if f"alerts.notify.{channel.name}" in places:
            findings.append(_twice(channel, location))
        if channel.sink is not None and has_sink:
            findings.append(_second_sink(channel, location))
        places[f"alerts.notify.{channel.name}"] = location
        has_sink = has_sink or channel.sink is not None
    return places


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


def _not_a_page(url: str, location: Location) -> Finding:
    return Finding(
        "invalid-value",
        f"`ui_url` cannot be {quoted(url)}",
        "it must be an http or https URL without `?` and `#`, to which the address of a query can be added",
        "for example, use `https://streams.example.com`",
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


def _twice(channel: Channel, location: Location) -> Finding:
    return Finding(
        "duplicate-name",
        f"two entries of `notify` have the name {quoted(channel.name)}",
        "alerts that are not delivered yet are kept under the name of their entry",
        "rename one of them",
        location,
    )


def _second_sink(channel: Channel, location: Location) -> Finding:
    return Finding(
        "invalid-value",
        f"{quoted(channel.name)} is a second sink for alerts",
        "runs write the rows of alerts to one sink",
        "keep one of the two; a query can copy its rows to other sinks",
        location,
    )
