"""`debug` and `compile --check` ask the servers that a project names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.services.database_server import PASSWORD, DatabaseServer
from tests.services.kafka_broker import KafkaBroker
from tests.services.kafka_topics import create_topic
from tests.services.schema_registry import start_registry
from tests.services.service_process import free_ports
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder

SECRETS = {
    "SQLSTREAM_SECRET_DATABASE": PASSWORD,
    "SQLSTREAM_SECRET_WRONG": "wrong-canary-0815",
    "SQLSTREAM_SECRET_REGISTRY": "hunter2",
}

PROJECT = """\
sources:
  - name: bus
    tables:
      - name: orders
        format: kafka
        options: {{kafka.bootstrap.servers: '{kafka}', subscribe: connections-orders}}
      - name: typing_error
        format: kafka
        options:
          kafka.bootstrap.servers: '{kafka}'
          subscribe: connections-ordes
      - name: gone
        format: kafka
        options: {{kafka.bootstrap.servers: '{closed}', subscribe: connections-orders}}
      - name: avro
        format: kafka
        options: {{kafka.bootstrap.servers: '{kafka}', subscribe: connections-orders}}
        value_format: avro
        schema_registry: {{url: 'http://{closed}', password: "{{{{ env_var('SQLSTREAM_SECRET_WRONG') }}}}", username: app}}
      - name: pinned
        format: kafka
        options: {{kafka.bootstrap.servers: '{kafka}', subscribe: connections-orders}}
        value_format: avro
        schema_registry: {{url: '{registry}', password: "{{{{ env_var('SQLSTREAM_SECRET_REGISTRY') }}}}", username: app}}
  - name: db
    tables:
      - name: customers
        format: jdbc
        mode: batch
        options: &db
          url: '{postgres}'
          user: shop
          password: "{{{{ env_var('SQLSTREAM_SECRET_DATABASE') }}}}"
          dbtable: customers
      - name: no_table
        format: jdbc
        mode: batch
        options: {{<<: *db, dbtable: custmers}}
      - name: no_login
        format: jdbc
        mode: batch
        options: {{<<: *db, password: "{{{{ env_var('SQLSTREAM_SECRET_WRONG') }}}}"}}
sinks:
  - name: totals
    format: kafka
    options: {{kafka.bootstrap.servers: '{kafka}', topic: connections-totals}}
  - {{name: table, format: jdbc, options: {{<<: *db, dbtable: '{{{{ model.name }}}}'}}}}
"""


@pytest.fixture
def project(folder: ProjectFolder, kafka: KafkaBroker, postgres: DatabaseServer) -> Iterator[ProjectFolder]:
    """A project that names servers that answer, do not answer, and do not have what it names."""
    if "connections-orders" not in _topics(kafka):
        create_topic(kafka.servers, "connections-orders")
    postgres.run("create table customers (id int primary key)")
    registry = start_registry(folder.root / "registry-data")
    registry.register(
        "connections-orders-value", {"type": "record", "name": "o", "fields": [{"name": "a", "type": "int"}]}
    )
    (port,) = free_ports(1)
    values = {"kafka": kafka.servers, "closed": f"127.0.0.1:{port}", "postgres": postgres.url, "registry": registry.url}
    folder.write(
        {
            "sources.yml": PROJECT.format(**values),
            "sinks.yml": "sinks: []\n",
            "models/copy.sql": "{{ config(sink='totals') }}\nselect value from {{ source('bus', 'orders') }}",
            "models/stored.sql": "{{ config(sink='table') }}\n"
            "select cast(value as string) as value from {{ source('bus', 'orders') }}",
        }
    )
    yield folder
    registry.stop()


def _topics(kafka: KafkaBroker) -> set[str]:
    from confluent_kafka.admin import AdminClient

    return set(AdminClient({"bootstrap.servers": kafka.servers, "log_level": 0}).list_topics(timeout=60).topics)


@pytest.mark.slow
def test_debug_asks_each_server_that_the_project_names(project: ProjectFolder) -> None:
    """Each broker, registry and database has a line with its location; what fails has a fix, and no secret is shown."""
    process = project.command("debug", "--output", "json", env=SECRETS)
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    checks = [check for check in json.loads(out[out.index("{\n") :])["checks"] if check["name"] in KINDS]
    assert process.returncode == 1
    assert {(check["name"], _declared(check["found"])): check["ok"] for check in checks} == {
        ("kafka", "bus.orders"): True,
        ("kafka", "bus.typing_error"): False,
        ("kafka", "bus.gone"): False,
        ("kafka", "bus.avro"): True,
        ("registry", "bus.avro"): False,
        ("kafka", "bus.pinned"): True,
        ("registry", "bus.pinned"): True,
        ("database", "db.customers"): True,
        ("database", "db.no_table"): False,
        ("database", "db.no_login"): False,
        ("kafka", "totals"): False,
        ("database", "table"): True,
    }, out
    assert all(check["found"].startswith("sources.yml:") for check in checks)
    assert all(check["fix"] for check in checks if not check["ok"])
    assert "`connections-orders`" in next(each["fix"] for each in checks if "typing_error" in each["found"])
    assert not [secret for secret in SECRETS.values() if secret in out]


@pytest.mark.slow
def test_check_asks_whether_the_topics_of_the_selected_models_exist(
    project: ProjectFolder, postgres: DatabaseServer
) -> None:
    """A topic that does not exist is an error at its name; a broker that is down is a warning, as is a wrong login."""
    sinks = f"sinks:\n  - {{name: wrong, format: jdbc, options: {{url: '{postgres.url}', user: no, dbtable: t}}}}\n"
    project.write(
        {
            "sinks.yml": f"{sinks}  - {{name: lake, format: parquet, path: x}}\n",
            "models/missing.sql": "{{ config(sink='lake') }}\nselect value from {{ source('bus', 'typing_error') }}",
            "models/down.sql": "{{ config(sink='wrong') }}\n"
            "select cast(value as string) as value from {{ source('bus', 'gone') }}",
        }
    )
    assert codes(project, "stored", "down") == [("warning", "unreachable"), ("warning", "unreachable")]
    assert codes(project, "missing", "copy") == [("error", "missing-topic"), ("error", "missing-topic")]


def codes(project: ProjectFolder, *models: str) -> list[tuple[str, str]]:
    """Returns the findings of `compile --check` for models: the severity and code of each."""
    process = project.command("compile", "--check", "--output", "json", "--select", *models, env=SECRETS)
    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)
    found = json.loads(out[out.index("{\n") :])["findings"]
    assert process.returncode == (1 if any(each["severity"] == "error" for each in found) else 0), out
    return sorted(
        (each["severity"], each["code"]) for each in found if each["code"] in ("unreachable", "missing-topic")
    )


KINDS = ("kafka", "registry", "database")


def _declared(found: str) -> str:
    """Returns the source or sink in the text of a check."""
    match = re.search(r"(?:source|sink) `([\w.]+)`", found)
    assert match, found
    return match[1]
