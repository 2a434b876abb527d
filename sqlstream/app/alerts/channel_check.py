"""`sqlstream debug --alerts`: sends a test message through each channel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from uuid import uuid4

from sqlstream.app.alerts.alerts_sink import SinkSender, Write
from sqlstream.app.alerts.delivery import DeliveryError, Sender
from sqlstream.app.alerts.payloads import TEST, AlertMessage
from sqlstream.app.alerts.run_alerts import check_secrets, make_sender
from sqlstream.app.loading.load import Loaded, load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.errors import FindingsError, UsageError
from sqlstream.project.configuration.alerts import Channel
from sqlstream.spark.secrets import Secrets
from sqlstream.times import utc_now

OpenSink = Callable[[Loaded, Secrets], AbstractContextManager[Write]]
"""Starts Spark, and gives the function that writes to the sink of the alerts."""

Tried = tuple[str, bool, str]
"""The name of a channel, whether it took the message, and what came back."""


def try_channels(request: ProjectRequest, open_sink: OpenSink) -> Iterator[Tried]:
    """Yields the result of each channel of the target, in the order of project.yml.

    Raises: FindingsError if the project cannot be compiled; UsageError without channels.
    """
    loaded = load_for_reading(request)
    compiled, secrets = loaded.compiled, Secrets(request.env)
    channels = compiled.project.target.alerts.notify
    if not channels:
        raise UsageError(f"target `{compiled.project.target.name}` has no channels; add `alerts: {{notify: ...}}`")
    for channel in channels:
        began = time.monotonic()
        try:
            check_secrets(compiled.project.target, [channel], secrets)
            sender = make_sender(channel, compiled, request.env, secrets)
            answer = _send(sender, _message(loaded, channel), lambda: open_sink(loaded, secrets))
        except DeliveryError as error:
            yield channel.name, False, str(error)
        except FindingsError as error:
            yield channel.name, False, secrets.redact(f"{error.findings[0].message}: {error.findings[0].why}")
        else:
            yield channel.name, True, f"{answer} after {time.monotonic() - began:.1f} s"


def _send(sender: Sender, message: AlertMessage, open_sink: Callable[[], AbstractContextManager[Write]]) -> str:
    if not isinstance(sender, SinkSender):
        return sender.send(message)
    with open_sink() as write:
        sender.attach(write)
        return sender.send(message)


def _message(loaded: Loaded, channel: Channel) -> AlertMessage:
    now = utc_now()
    project = loaded.compiled.project
    return AlertMessage(
        id=uuid4().hex,
        time=now,
        project=project.name,
        target=project.target.name,
        invocation_id=loaded.invocation.id,
        model=TEST,
        alert=TEST,
        state=TEST,
        message=f"a test of the channel {channel.name} by `sqlstream debug --alerts`; nothing is wrong",
        alert_id=uuid4().hex,
        since=now,
        value=None,
        limit=None,
    )
