"""Reads the alerts of a target, or else of the project, as values."""

from __future__ import annotations

from sqlstream.errors import Finding
from sqlstream.project.alerts import NO_ALERTS, Alerts, Channel, Webhook
from sqlstream.project.configuration.alerts.documents import ChannelDocument
from sqlstream.project.configuration.documents import ProjectDocument, TargetDocument
from sqlstream.project.configuration.trigger import interval_seconds
from sqlstream.project.configuration.validate import Path
from sqlstream.project.wording import quoted
from sqlstream.project.yaml import YamlMapping, locate


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
