"""Starts servers on loopback, prints their addresses, and stops them on Ctrl-C (`make services SERVICES="kafka postgres"`).

Without arguments it starts Kafka and those databases that are installed. The broker has the topics of the worked examples.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.services.database_server import PASSWORD, USER, DatabaseServer, NotInstalledError
from tests.services.kafka_broker import start_kafka
from tests.services.kafka_topics import create_topic
from tests.services.mariadb import start_mariadb
from tests.services.postgres import start_postgres

TOPICS: dict[str, dict[str, str]] = {
    "nest-updates": {},
    "nest-sightings": {"cleanup.policy": "compact"},
    "cdc-customers": {},
}
"""The topics of the worked examples, with their settings."""


def main(names: Sequence[str]) -> int:
    """Returns 1 if a server is unknown or not installed, otherwise 0 after a signal."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    unknown = sorted({*names} - STARTS.keys())
    if unknown:
        print(f"there is no server {', '.join(unknown)}; there are {', '.join(STARTS)}", file=sys.stderr)
        return 1
    with ExitStack() as stack:
        for name in names or STARTS:
            try:
                print(STARTS[name](stack), flush=True)
            except NotInstalledError as error:
                print(error, file=sys.stderr)
                if names:
                    return 1
        print("Ctrl-C stops them, and removes their data.", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print()
    return 0


def _kafka(stack: ExitStack) -> str:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sqlstream-kafka-")))
    broker = start_kafka(folder)
    stack.callback(broker.stop)
    for name, settings in TOPICS.items():
        create_topic(broker.servers, name, **settings)
    return f"kafka.bootstrap.servers: {broker.servers}"


def _database(start: Callable[[], DatabaseServer], stack: ExitStack) -> str:
    server = start()
    stack.callback(server.stop)
    return f"{server.url} user: {USER} password: {PASSWORD}"


STARTS: dict[str, Callable[[ExitStack], str]] = {
    "kafka": _kafka,
    "postgres": partial(_database, start_postgres),
    "mariadb": partial(_database, start_mariadb),
}
"""Each server, and what starts it until the stack is closed and returns its address."""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
