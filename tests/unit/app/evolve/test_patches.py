"""Patches of `schema_changes: evolve`: they change only the columns of the source, and `git apply` and `patch` take them."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sqlstream.app.evolve.declaration import evolve
from sqlstream.app.evolve.patches import SchemaPatches, known_types, patch_path, patch_text
from sqlstream.app.observe.observers import Observed, Snapshot
from sqlstream.errors import Finding
from sqlstream.project.types.data_types import Struct
from sqlstream.project.types.ddl import parse_type
from sqlstream.project.values import Project
from sqlstream.state.runs.events import WarningEmitted
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.runs.tracked_run import TrackedRun
from tests.support.loading_cases import load_good

TYPES = "struct<color: string, item: struct<lot: bigint>>"
NOW = datetime(2026, 1, 1, tzinfo=UTC)

BLOCK = """\
sources:
  - name: shop  # the shop
    tables:
      - name: orders
        format: json
        path: in
        schema_changes: evolve
        columns:
          # the key
          - {name: id,  data_type: bigint}   # never null
          - {name: item, data_type: "struct<sku: string COMMENT 'a b'>"}  # nested

      # the next
      - {name: other, format: json, path: b, schema: "id int"}
"""

KEYS = "format: json, path: in, schema_changes: evolve"


def _one(rest: str) -> str:
    return f"sources: [{{name: shop, tables: [{{name: orders, {KEYS}, {rest}}}]}}]\n"


FILES = {
    "a block of flow mappings": (
        BLOCK,
        BLOCK.replace("struct<sku: string COMMENT 'a b'>\"}  # nested\n", "!").replace(
            '"!',
            "'struct<sku: string COMMENT ''a b'', lot: bigint>'}  # nested\n"
            "          - {name: color, data_type: string}\n",
        ),
    ),
    "block mappings, with Windows's line ends": (
        (
            "sources:\r\n- name: shop\r\n  tables:\r\n  - name: orders\r\n    format: json\r\n    path: in\r\n"
            "    schema_changes: evolve\r\n    columns:\r\n    - name: id\r\n      data_type: int  # the key\r\n"
            "    - data_type: struct<sku:string>\r\n      name: item\r\n      description: what # it is\r\n"
        ),
        (
            "    - data_type: 'struct<sku: string, lot: bigint>'\r\n      name: item\r\n      description: what # it is\r\n"
            "    - name: color\r\n      data_type: string\r\n"
        ),
    ),
    "no line end at the end": (
        BLOCK[: BLOCK.index("  # nested")],
        "lot: bigint>'}\n          - {name: color, data_type: string}",
    ),
    "a flow list": (
        _one("columns: [{name: id, data_type: int}, {name: item, data_type: 'struct<sku:string>'}]"),
        "{name: item, data_type: 'struct<sku: string, lot: bigint>'}, {name: color, data_type: string}]}]}]\n",
    ),
    "a flow list in lines": (
        "sources: [{name: shop, tables: [{name: orders, " + KEYS + ", columns: [\n    {name: id, data_type: int},\n"
        "    {name: item, data_type: 'struct<sku: string>'},  # nested\n]}]}]\n",
        "    {name: item, data_type: 'struct<sku: string, lot: bigint>'},\n    {name: color, data_type: string},  # nested\n",
    ),
    "schema in quotes": (
        _one("schema: 'id int, item struct<sku: string>'"),
        "schema: 'id int, item struct<sku: string, lot: bigint>, color string'",
    ),
}


def _evolved(root: Path, types: str = TYPES) -> str:
    """Writes the patch of `shop.orders`, and returns its text."""
    (table,) = [each for each in load_good(root, {}).sources if each.name == "orders"]
    found = parse_type(types)
    assert isinstance(found, Struct)
    text = patch_text(types, evolve(root, table, found))
    (root / "the.patch").write_bytes(text.encode())
    return text


@pytest.mark.parametrize("tool", [["git", "apply", "the.patch"], ["patch", "-p1", "--binary", "-i", "the.patch"]])
@pytest.mark.parametrize("name", FILES)
def test_a_patch_changes_only_the_columns(name: str, tool: list[str], tmp_path: Path) -> None:
    """Comments, line ends and the form of the list stay, and the source then has the fields."""
    before, after = FILES[name]
    load_good(tmp_path, {"models/a folder/_sources.yml": "\ufeff" + before})

    assert known_types(_evolved(tmp_path)) == TYPES

    subprocess.run(tool, cwd=tmp_path, check=True)
    text = (tmp_path / "models/a folder/_sources.yml").read_bytes().decode()
    assert after in text
    assert len(text.splitlines()) - len(before.splitlines()) <= 2
    assert _evolved(tmp_path) == ""
    (table,) = [each for each in load_good(tmp_path, {}).sources if each.name == "orders"]
    assert table.spark_schema is not None
    assert "lot: bigint" in (table.spark_schema.ddl or "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("schema: id int -- the key", 'schema: "id int -- the key\\n, color string"'),
        ("schema: |\n  id int, -- the key\n  at timestamp -- a time\n", "  at timestamp -- a time\n  , color string\n"),
        ("schema: >-\n  id int,\n  at timestamp\n", "schema: >-\n  id int,\n  at timestamp, color string\n"),
        ("schema: id int", "schema: id int, color string"),
        ('schema: "id int"', 'schema: "id int, color string"'),
    ],
)
def test_the_text_of_a_schema_is_kept(before: str, after: str, tmp_path: Path) -> None:
    """A new column comes after the last one, in each of YAML's forms of text."""
    lines = "".join(f"        {line}\n" for line in before.splitlines())
    load_good(tmp_path, {"sources.yml": BLOCK[: BLOCK.index("        columns:")] + lines})

    _evolved(tmp_path, "struct<color: string>")
    subprocess.run(["git", "apply", "the.patch"], cwd=tmp_path, check=True)

    (table,) = load_good(tmp_path, {}).sources
    assert table.spark_schema is not None
    assert (table.spark_schema.ddl or "").endswith("_rescued_data` string")
    assert "color string" in (table.spark_schema.ddl or "")
    text = "\n".join(line[8:] for line in (tmp_path / "sources.yml").read_text().splitlines()) + "\n"
    assert after in text


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("s.ddl", "id int, -- the key\nat timestamp\n", "id int, -- the key\nat timestamp\n, color string\n"),
        (
            "s.json",
            '{"type": "struct", "fields": [{"name": "id", "type": "integer", "nullable": true, "metadata": {}}]}',
            '"metadata": {}}, {"name": "color", "type": "string", "nullable": true, "metadata": {}}]}',
        ),
    ],
)
def test_the_file_of_a_schema_is_changed(name: str, before: str, after: str, tmp_path: Path) -> None:
    """The patch is one of the file that `schema_file` names."""
    load_good(tmp_path, {"sources.yml": _one(f"schema_file: schemas/{name}"), f"schemas/{name}": before})

    _evolved(tmp_path, "struct<color: string>")
    subprocess.run(["git", "apply", "the.patch"], cwd=tmp_path, check=True)

    assert after in (tmp_path / f"schemas/{name}").read_text()
    assert _evolved(tmp_path, "struct<color: string>") == ""


ALIAS = """\
sources:
  - name: shop
    tables:
      - {name: other, format: json, path: b, columns: &same [{name: id, data_type: int}]}
      - {name: orders, format: json, path: in, schema_changes: evolve, columns: *same}
"""


def test_a_declaration_of_two_tables_is_not_changed(tmp_path: Path) -> None:
    """A patch would change the other table, so there is none; the new fields are known."""
    load_good(tmp_path, {"sources.yml": ALIAS})
    (table,) = [each for each in load_good(tmp_path, {}).sources if each.name == "orders"]
    found = parse_type("struct<color: string>")
    assert isinstance(found, Struct)

    evolved = evolve(tmp_path, table, found)

    assert (evolved.columns.named, evolved.after) == (("color string",), None)


def _observed(types: str) -> Observed:
    batch = BatchProgress("m", 0, "2026-01-01T00:00:00Z", 1, 1, 1, None, new_types={"shop.orders": types})
    return Observed(NOW, batch, None)


def _patches(project: Project, reported: list[Finding]) -> SchemaPatches:
    def emit(event: WarningEmitted) -> None:
        reported.append(event.finding)

    return SchemaPatches(project, emit)


def test_runs_add_to_a_patch_until_it_is_applied(tmp_path: Path) -> None:
    """A run reports new fields at once, and later ones at its end. The next run keeps those of a patch that is not
    applied, and removes one that is.
    """
    project = load_good(tmp_path, {"sources.yml": BLOCK})
    reported: list[Finding] = []
    patches = _patches(project, reported)
    path = tmp_path / patch_path("shop.orders")

    patches.observe(_observed("struct<color: string, `a\nb`: void>"))
    patches.observe(_observed("struct<color: string>"))
    assert [finding.code for finding in reported] == ["new-fields"]
    assert reported[0].message == "source `shop.orders` has new fields: color string"
    assert reported[0].why.endswith("or a name that no column can have: a b")
    assert "apply it with `git apply`" in reported[0].fix
    assert reported[0].location is not None
    assert reported[0].location.line == 7
    patches.observe(_observed("struct<size: double>"))
    assert len(reported) == 1
    patches.close(Snapshot(NOW, TrackedRun(), 0))
    assert reported[1].message.endswith("new fields: color string, size double")

    patches = _patches(project, reported)
    patches.observe(_observed("struct<n: bigint, size: bigint>"))
    assert reported[2].message.endswith("new fields: color string, n bigint, size double")
    subprocess.run(["git", "apply", str(path)], cwd=tmp_path, check=True)
    assert path.exists()
    _patches(load_good(tmp_path, {}), reported)
    assert not path.exists()
    assert len(reported) == 3


def test_runs_at_the_same_time_write_one_patch(tmp_path: Path) -> None:
    """A run keeps the fields that another one has written since it started."""
    project = load_good(tmp_path, {"sources.yml": BLOCK})
    one, other = _patches(project, []), _patches(project, [])

    one.observe(_observed("struct<color: string, size: bigint>"))
    other.observe(_observed("struct<size: double>"))
    one.observe(_observed("struct<n: bigint>"))

    patch = (tmp_path / patch_path("shop.orders")).read_text()
    assert known_types(patch) == "struct<`color`: string, `n`: bigint, `size`: double>"


def test_a_table_that_does_not_evolve_has_no_patch(tmp_path: Path) -> None:
    """Only `evolve` writes patches."""
    project = load_good(tmp_path, {"sources.yml": BLOCK.replace("evolve", "rescue")})

    patches = _patches(project, [])
    patches.observe(_observed("struct<color: string>"))

    assert not patches.is_needed
    assert not (tmp_path / "target").exists()
