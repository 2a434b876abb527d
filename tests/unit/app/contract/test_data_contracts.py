"""`contract export` and `contract import`: documents of the Open Data Contract Standard, validated with its own schema.

`tests/support/odcs/` has the schema of version 3.1.0 as datacontract-cli 1.2.8 distributes it, with its license. `make
data-contracts` validates the same documents with datacontract-cli itself.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft201909Validator, FormatChecker

from sqlstream.app.contract.export import contract_yaml, export_contract
from sqlstream.app.contract.importing import ImportedContract, import_contract
from sqlstream.app.loading.load import load_for_reading, try_load
from sqlstream.app.request import ProjectRequest
from sqlstream.errors import FindingsError, UsageError

SCHEMA = Path(__file__).parents[3] / "support" / "odcs" / "odcs-3.1.0.schema.json"
TYPES = {
    "id": ("bigint", "integer"),
    "small": ("tinyint", "integer"),
    "price": ("decimal(10,2)", "number"),
    "share": ("double", "number"),
    "flag": ("boolean", "boolean"),
    "day": ("date", "date"),
    "at": ("timestamp", "timestamp"),
    "local": ("timestamp_ntz", "timestamp"),
    "data": ("binary", "string"),
    "tags": ("array<struct<`a b`: int, c: string>>", "array"),
    "names": ("map<string, int>", "object"),
    "wait": ("interval day to second", None),
    "place": ("struct<lat: double, lon: double>", "object"),
}
COLUMNS = "\n".join(f"      - {{name: {name}, data_type: '{ddl}'}}" for name, (ddl, _) in TYPES.items())
DDL = ", ".join(f"{name} {ddl}" for name, (ddl, _) in TYPES.items())
SINKS = {
    "files": "format: parquet, path: '{{ model.name }}', partition_by: [day]",
    "bucket": "format: json, path: 's3a://lake/{{ model.name }}'",
    "topic": "format: kafka, options: {kafka.bootstrap.servers: 'kafka:9092', topic: orders}",
    "base": "format: jdbc, options: {url: 'jdbc:postgresql://db:5433/shop', dbtable: sales.orders, password: \"{{ env_var('SQLSTREAM_SECRET_P') }}\"}",
    "secret": "format: jdbc, options: {url: \"{{ env_var('SQLSTREAM_SECRET_URL') }}\", dbtable: orders}",
    "screen": "format: console",
}
SERVERS: dict[str, dict[str, object]] = {
    "files": {"type": "local", "path": ".sqlstream/local/orders", "format": "parquet"},
    "bucket": {"type": "s3", "location": "s3://lake/orders", "format": "json"},
    "topic": {"type": "kafka", "host": "kafka:9092", "format": "json"},
    "base": {"type": "postgres", "host": "db", "port": 5433, "database": "shop", "schema": "sales"},
}
FILES = {
    "project.yml": "name: shop\nversion: 2.1.0\n",
    "sources.yml": f"sources: [{{name: shop, tables: [{{name: orders, format: json, path: in, schema: '{DDL}'}}]}}]\n",
    "sinks.yml": "sinks:\n" + "".join(f"  - {{name: {name}, {keys}}}\n" for name, keys in SINKS.items()),
    "models/orders.sql": "{{ config(sink='files') }} select * from {{ source('shop', 'orders') }}\n",
    "models/customers.sql": "{{ config(sink='screen') }} select id from {{ source('shop', 'orders') }}\n",
    "models/_models.yml": f"""
groups: [{{name: sales, owner: {{name: Ada, email: ada@example.com}}}}]
models:
  - name: orders
    description: "Orders, {{{{ '{{{{' }}}} as text"
    config: {{contract: {{enforced: true}}, group: sales, tags: [daily]}}
    constraints:
      - {{type: primary_key, columns: [id, day]}}
      - {{type: check, name: cheap, expression: "price < 100 and small <> 7"}}
    columns:
{COLUMNS}
""".replace("{name: id, data_type: 'bigint'}", "{name: id, data_type: bigint, description: The number, constraints: "
    "[{type: foreign_key, to: ref('customers'), to_columns: [id]}]}")
    .replace("{name: small, data_type: 'tinyint'}", "{name: small, data_type: tinyint, constraints: [{type: not_null}, {type: unique}]}"),
}  # fmt: skip


def project(root: Path, files: Mapping[str, str] = {}) -> ProjectRequest:
    """Writes the project of these tests and returns its request."""
    for name, text in {**FILES, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return ProjectRequest(root, env={"SQLSTREAM_SECRET_P": "hidden", "SQLSTREAM_SECRET_URL": "jdbc:hidden"})


def valid(contract: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a contract as its YAML reads, which has no error of the standard's schema."""
    read: dict[str, Any] = yaml.safe_load(contract_yaml(contract))
    validator = Draft201909Validator(json.loads(SCHEMA.read_text(encoding="utf-8")), format_checker=FormatChecker())
    assert [error.message for error in validator.iter_errors(read)] == []
    if "SQLSTREAM_DATACONTRACT" in os.environ:
        command = [os.environ["SQLSTREAM_DATACONTRACT"], "lint", "/dev/stdin"]
        linted = subprocess.run(command, input=contract_yaml(contract), capture_output=True, text=True, check=False)
        assert linted.returncode == 0, linted.stdout + linted.stderr
    return read


def test_an_export_has_what_the_model_knows(tmp_path: Path) -> None:
    """Columns have the standard's types and Spark's, keys, descriptions and constraints; the group is the team."""
    found = valid(export_contract(project(tmp_path), "orders"))

    assert (found["id"], found["version"], found["status"]) == ("shop.orders", "2.1.0", "active")
    assert found["team"]["members"] == [{"username": "ada@example.com", "name": "Ada", "role": "owner"}]
    (orders,) = found["schema"]
    columns = {each["name"]: each for each in orders["properties"]}
    assert {name: each.get("logicalType") for name, each in columns.items()} == {
        name: logical for name, (_, logical) in TYPES.items()
    }
    assert columns["id"] == {
        "name": "id",
        "logicalType": "integer",
        "physicalType": "bigint",
        "description": "The number",
        "required": True,
        "primaryKey": True,
        "primaryKeyPosition": 1,
        "relationships": [{"type": "foreignKey", "to": "customers.id"}],
    }
    assert (columns["small"]["required"], columns["small"]["unique"], columns["price"]["required"]) == (
        True,
        True,
        False,
    )
    assert (columns["day"]["primaryKeyPosition"], columns["day"]["partitionKeyPosition"]) == (2, 1)
    assert [each["name"] for each in columns["tags"]["items"]["properties"]] == ["a b", "c"]
    assert orders["quality"][0]["query"] == "SELECT COUNT(*) FROM {object} WHERE NOT (price < 100 and small <> 7)"


@pytest.mark.parametrize("sink", SINKS)
def test_a_sink_is_a_server_without_secrets(tmp_path: Path, sink: str) -> None:
    """Files, topics and databases are servers of the standard; a sink with a secret address is not exported."""
    sql = f"{{{{ config(sink='{sink}') }}}} select * from {{{{ source('shop', 'orders') }}}}\n"
    found = valid(export_contract(project(tmp_path, {"models/orders.sql": sql}), "orders"))

    expected = [{"server": sink, "environment": "local", **SERVERS[sink]}] if sink in SERVERS else None
    assert found.get("servers") == expected
    assert "hidden" not in contract_yaml(found)


def test_an_export_without_a_model_has_all_contracts(tmp_path: Path) -> None:
    """Without a name, the contract has all models with an enforced contract; a model without one is a draft."""
    request = project(tmp_path)

    assert [each["name"] for each in valid(export_contract(request, None))["schema"]] == ["orders"]
    more = (
        "models: [{name: customers, config: {contract: {enforced: true}}, columns: [{name: id, data_type: bigint}]}]\n"
    )
    sql = FILES["models/customers.sql"].replace("screen", "bucket")
    project(tmp_path, {"models/customers.yml": more, "models/customers.sql": sql})
    project(tmp_path, {"models/orders.sql": FILES["models/orders.sql"].replace("'files'", "'bucket'")})
    (tmp_path / "models/customers.sql").write_text(sql, encoding="utf-8")
    found = valid(export_contract(request, None))
    assert [(each["server"], each["location"]) for each in found["servers"]] == [
        ("bucket", "s3://lake/customers"),
        ("bucket_orders", "s3://lake/orders"),
    ]
    (tmp_path / "models/customers.yml").unlink()
    assert valid(export_contract(request, "customers"))["status"] == "draft"
    with pytest.raises(UsageError, match="there is no model `order`"):
        export_contract(request, "order")
    (tmp_path / "models/_models.yml").unlink()
    with pytest.raises(UsageError, match="no model has an enforced contract"):
        export_contract(request, None)


def test_an_exported_contract_can_be_imported(tmp_path: Path) -> None:
    """The properties that an import writes give the same contract."""
    request = project(tmp_path)
    exported = export_contract(request, "orders")
    (tmp_path / "contract.yaml").write_text(contract_yaml(exported), encoding="utf-8")
    with pytest.raises(UsageError, match="`orders` already has properties"):
        import_contract(request, tmp_path / "contract.yaml")

    (tmp_path / "models/_models.yml").unlink()
    found = import_contract(request, tmp_path / "contract.yaml")
    assert found == ImportedContract(("models/orders.yml",), ())
    assert try_load(request).errors == ()
    again = export_contract(request, "orders")
    assert again["schema"] == exported["schema"]
    assert again["team"] == exported["team"]

    with pytest.raises(UsageError, match=r"already has properties"):
        import_contract(request, tmp_path / "contract.yaml")


FOREIGN = """
apiVersion: v3.0.2
kind: DataContract
id: 1
version: 1.0.0
status: active
schema:
  - name: shipments
    properties:
      - {name: id, logicalType: integer, physicalType: NUMBER(10), required: true, primaryKey: true}
      - {name: note, physicalType: VARCHAR(20), logicalType: string}
      - {name: at, logicalType: timestamp, physicalType: timestamptz, unique: true}
      - {name: stops, logicalType: array, items: {logicalType: object, properties: [{name: a b, logicalType: string}]}}
      - {name: shape, logicalType: object, quality: [{metric: nullValues, mustBe: 0}]}
    quality: [{type: text, description: "All {{ shipments }}"}]
"""


def test_a_contract_of_another_tool_is_imported(tmp_path: Path) -> None:
    """Types of other databases become Spark's by their logical types; what has no equal is a note."""
    request = project(tmp_path, {"contract.yaml": FOREIGN})
    found = import_contract(request, tmp_path / "contract.yaml")

    assert found.files == ("models/shipments.yml",)
    assert found.notes == (
        "shipments.shape: add the data_type; Spark has no type for `object`",
        "shipments.shape: the quality rule `nullValues` is not imported",
        "shipments: the quality rule `All {{ shipments }}` is not imported",
    )
    (model,) = yaml.safe_load((tmp_path / "models/shipments.yml").read_text(encoding="utf-8"))["models"]
    assert model["columns"] == [
        {"name": "id", "data_type": "bigint", "constraints": [{"type": "primary_key"}]},
        {"name": "note", "data_type": "varchar(20)"},
        {"name": "at", "data_type": "timestamp", "constraints": [{"type": "unique"}]},
        {"name": "stops", "data_type": "array<struct<`a b`: string>>"},
        {"name": "shape"},
    ]
    assert load_for_reading(request).compiled.models
    (tmp_path / "models/shipments.sql").write_text("select 1 as id\n", encoding="utf-8")
    with pytest.raises(UsageError, match="already has properties"):
        import_contract(request, tmp_path / "contract.yaml")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("kind: Other\n", 1),
        ("kind: DataContract\n", 1),
        ("kind: DataContract\nschema:\n  - name: a b\n    properties: []\n", 3),
        ("kind: DataContract\nschema:\n  - name: a\n  - name: b\n", 3),
        ("kind: [\n", 1),
    ],
)
def test_a_file_that_is_no_contract_is_refused(tmp_path: Path, text: str, line: int) -> None:
    """The finding is at the line of the file, and nothing is written."""
    request = project(tmp_path, {"contract.yaml": text})
    with pytest.raises(FindingsError) as refused:
        import_contract(request, tmp_path / "contract.yaml")

    assert [finding.location and finding.location.line for finding in refused.value.findings] == [line]
