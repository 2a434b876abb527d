"""A password that every connector gets appears nowhere: not in files, not on the console, not on pages of Spark."""

from __future__ import annotations

import signal
import urllib.request
from pathlib import Path

import pytest

from tests.services.database_server import PASSWORD, USER, DatabaseServer
from tests.services.kafka_topics import Topic
from tests.services.service_process import free_ports
from tests.spark.conftest import ProjectFolder, wait_for

JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{PASSWORD}";'
ENV = {"SQLSTREAM_SECRET_PASSWORD": PASSWORD, "SQLSTREAM_SECRET_JAAS": JAAS}

PAGES = ("environment/", "jobs/", "stages/", "SQL/", "StreamingQuery/", "executors/")

SOURCES = """
sources:
  - name: bus
    tables:
      - name: events
        format: kafka
        options:
          kafka.bootstrap.servers: "{servers}"
          kafka.sasl.jaas.config: "{{{{ env_var('SQLSTREAM_SECRET_JAAS') }}}}"
          subscribe: "{topic}"
          startingOffsets: earliest
        value_format: json
        schema: id bigint
      - name: locked
        format: kafka
        options:
          kafka.bootstrap.servers: "{servers}"
          kafka.security.protocol: SASL_PLAINTEXT
          kafka.sasl.mechanism: PLAIN
          kafka.sasl.jaas.config: "{{{{ env_var('SQLSTREAM_SECRET_JAAS') }}}}"
          kafka.default.api.timeout.ms: 5000
          kafka.request.timeout.ms: 4000
          subscribe: "{topic}"
sinks:
"""

SINK = """
  - name: {name}
    format: jdbc
    options: {{url: "{url}", dbtable: "{table}", user: {user}, password: "{{{{ env_var('SQLSTREAM_SECRET_PASSWORD') }}}}"}}
"""

QUERY = (
    "{{{{ config(sink='{sink}', trigger='1 second', retries=0) }}}}\nselect id from {{{{ source('bus', '{table}') }}}}"
)


def files_with_password(folder: Path) -> list[str]:
    """Returns the files below a folder that contain the password."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return [str(path) for path in files if PASSWORD.encode() in path.read_bytes()]


@pytest.mark.slow
def test_a_password_appears_nowhere(
    folder: ProjectFolder, topic: Topic, postgres: DatabaseServer, mariadb: DatabaseServer
) -> None:
    """Neither a run that succeeds nor one whose connectors all fail shows the password; nor does Spark's interface."""
    (port,) = free_ports(1)
    sinks = (
        SINK.format(name="in_postgres", url=postgres.url, table="canary", user=USER),
        SINK.format(name="in_mariadb", url=mariadb.url, table="canary", user=USER),
        SINK.format(name="no_postgres", url=postgres.url, table="canary", user="stranger"),
        SINK.format(name="no_mariadb", url=mariadb.url, table="canary", user="stranger"),
    )
    folder.write(
        {
            "project.yml": "name: shop\ntargets: {local: {master: 'local[2]', storage: store, spark: "
            f"{{spark.ui.enabled: 'true', spark.ui.port: '{port}'}}}}}}\n",
            "models/_all.yml": SOURCES.format(servers=topic.servers, topic=topic.name) + "".join(sinks),
            **{f"models/{sink}.sql": QUERY.format(sink=sink, table="events") for sink in ("in_postgres", "in_mariadb")},
            **{f"models/{sink}.sql": QUERY.format(sink=sink, table="events") for sink in ("no_postgres", "no_mariadb")},
            "models/locked.sql": QUERY.format(sink="lake", table="locked"),
        }
    )
    topic.send([{"id": 1}])

    process = folder.command("run", "--select", "in_postgres", "in_mariadb", "--debug", env=ENV)
    lines = wait_for(process, "1 row in") + wait_for(process, "1 row in")
    pages = [_page(port, page) for page in PAGES]
    process.send_signal(signal.SIGTERM)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0, printed
    failing = folder.command("run", "--select", "no_postgres", "no_mariadb", "locked", "--debug", env=ENV)
    failed, _ = failing.communicate(timeout=120)
    assert failing.returncode == 1, failed

    assert all("Spark" in page for page in pages)
    assert not [page for page in (*pages, *lines, printed, failed) if PASSWORD in page]
    assert files_with_password(folder.root) == []


def _page(port: int, name: str) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}") as response:
        return str(response.read().decode())
