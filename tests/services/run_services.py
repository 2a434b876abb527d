"""Starts Kafka, PostgreSQL and MariaDB on loopback, prints their addresses, and stops them on Ctrl-C (`make services`).

The broker has the topics of the worked examples.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from database_server import PASSWORD, USER, DatabaseServer, NotInstalledError
from kafka_broker import start_kafka
from kafka_topics import create_topic
from mariadb import start_mariadb
from postgres import start_postgres

TOPICS: dict[str, dict[str, str]] = {
    "nest-updates": {},
    "nest-sightings": {"cleanup.policy": "compact"},
    "cdc-customers": {},
}
"""The topics of the worked examples, with their settings."""


def main() -> int:
    """Returns 1 if a server is not installed, otherwise 0 after a signal."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sqlstream-kafka-")))
        try:
            databases = [_started(stack, start_postgres()), _started(stack, start_mariadb())]
        except NotInstalledError as error:
            print(error, file=sys.stderr)
            return 1
        broker = start_kafka(folder)
        stack.callback(broker.stop)
        for name, settings in TOPICS.items():
            create_topic(broker.servers, name, **settings)
        print(f"kafka.bootstrap.servers: {broker.servers}")
        for database in databases:
            print(f"{database.url} user: {USER} password: {PASSWORD}")
        print("Ctrl-C stops them, and removes their data.", flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print()
    return 0


def _started(stack: ExitStack, server: DatabaseServer) -> DatabaseServer:
    stack.callback(server.stop)
    return server


if __name__ == "__main__":
    sys.exit(main())
