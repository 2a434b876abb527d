"""Valid projects become one value, file by file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sqlstream.location import Location
from sqlstream.project.configuration.columns import Schema, fields_of
from sqlstream.project.configuration.config import merge_configs
from sqlstream.project.configuration.documents import DeclaredColumn, ModelColumn, SourceColumn
from sqlstream.project.configuration.target import Target
from sqlstream.project.configuration.trigger import Trigger
from sqlstream.project.secret_text import SecretName, SecretText
from sqlstream.project.yaml import Located
from tests.support.loading_cases import load, load_good

SINKS = "sinks:\n  - {name: lake, format: parquet, path: '{{ model.name }}', options: {retries: 010, header: true}}\n"


def test_minimal_project_has_a_local_target(tmp_path: Path) -> None:
    """A project.yml with only a name has a local target."""
    project = load_good(tmp_path, {})
    assert (project.name, project.target.name, project.target_names) == ("shop", "local", ("local",))
    assert (project.target.master, project.target.storage, project.target.remote) == (
        "local[*]",
        ".sqlstream/local",
        None,
    )


def test_models_macros_and_seeds_are_found(tmp_path: Path) -> None:
    """Models, macros and seeds are found in folders at any depth, ordered by name."""
    project = load_good(
        tmp_path,
        {
            "models/b/a.sql": "select 1",
            "models/c.sql": "select 2",
            "seeds/geo/zips.csv": "zip,city\n",
            "macros/m.sql": "{% macro m() %}{% endmacro %}",
            "target/compiled/models/c.sql": "select 3",
        },
    )
    assert [(model.name, model.path, model.folders) for model in project.models] == [
        ("a", "models/b/a.sql", ("b",)),
        ("c", "models/c.sql", ()),
    ]
    assert [(seed.name, seed.path) for seed in project.seeds] == [("zips", "seeds/geo/zips.csv")]
    assert [macro.path for macro in project.macros] == ["macros/m.sql"]


def test_source_table_inherits_from_its_source(tmp_path: Path) -> None:
    """Tables inherit format, options, tags and meta of their source and can override them; numbers keep their text."""
    text = """\
version: 2
sources:
  - name: shop
    format: json
    options: {maxFilesPerTrigger: 020, multiLine: true}
    tags: raw
    meta: {owner: a, team: b}
    tables:
      - name: orders
        path: data/orders
        schema: id bigint, at timestamp
        options: {maxFilesPerTrigger: 5}
        tags: [money]
        meta: {owner: c}
        mode: batch
        watermark: {column: at, delay: 10 Minutes}
"""
    (table,) = load_good(tmp_path, {"models/deep/_shop.yml": text}).sources
    assert table.full_name == "shop.orders"
    assert (table.format, table.mode, table.path) == ("json", "batch", "data/orders")
    assert table.options == {"maxFilesPerTrigger": "5", "multiLine": "true"}
    assert (table.tags, table.meta) == (("raw", "money"), {"owner": "c", "team": "b"})
    assert table.spark_schema == Schema(Location("models/deep/_shop.yml", 11, 17), ddl="id bigint, at timestamp")
    assert table.watermark is not None
    assert (table.watermark.delay, table.locations["watermark"].line) == ("10 minutes", 16)
    assert table.locations["format"].line == 4
    assert table.locations["options.maxFilesPerTrigger"].line == 12
    assert table.locations["options.multiLine"].line == 5


def test_options_keep_secrets_as_references(tmp_path: Path) -> None:
    """A secret in an option of a source or in a target's Spark configuration is kept as a reference."""
    files = {
        "project.yml": "name: shop\ntargets: {local: {spark: {k: \"{{ secret('A') }}\", n: 1}}}\n",
        "sources.yml": "sources: [{name: s, tables: [{name: t, format: json, options: {p: \"{{ secret('B') }}\"}}]}]\n",
    }
    project = load_good(tmp_path, files)
    assert project.target.spark == {"k": SecretText((SecretName("A"),)), "n": "1"}
    assert project.sources[0].options == {"p": SecretText((SecretName("B"),))}


def test_schema_comes_from_columns_or_a_file(tmp_path: Path) -> None:
    """Typed columns become DDL, a .json file stays JSON, and any other file is DDL; untyped columns only describe."""
    struct = '{"type": "struct", "fields": []}'
    text = """\
sources:
  - name: s
    format: json
    tables:
      - {name: a, columns: [{name: 'odd`name', data_type: int}, {name: b, data_type: string}]}
      - {name: b, schema_file: schemas/b.json}
      - {name: c, schema_file: schemas/c.ddl, columns: [{name: x, description: the x}]}
      - {name: d, columns: [{name: x}]}
"""
    files = {"sources.yml": text, "schemas/b.json": struct, "schemas/c.ddl": "x int\n"}
    a, b, c, d = load_good(tmp_path, files).sources
    assert a.spark_schema is not None
    assert a.spark_schema.ddl == "`odd``name` int, `b` string"
    assert b.spark_schema == Schema(Location("schemas/b.json"), json=struct)
    assert c.spark_schema == Schema(Location("schemas/c.ddl"), ddl="x int")
    assert c.columns == (SourceColumn(name="x", description="the x"),)
    assert d.spark_schema is None


def test_sinks_keep_their_jinja(tmp_path: Path) -> None:
    """Jinja over `model` in a sink is left for the compiler, and option values are text."""
    (sink,) = load_good(tmp_path, {"sinks/lake.yaml": SINKS}).sinks
    assert sink.located("path", sink.path) == Located("{{ model.name }}", Location("sinks/lake.yaml", 2, 41))
    assert sink.options == {"retries": "010", "header": "true"}


def test_one_source_can_be_spread_over_files(tmp_path: Path) -> None:
    """One source can be spread over files, as in dbt; only the same table of a source is a duplicate."""
    files = {
        "sources.yml": "sources: [{name: s, tables: [{name: a, format: json}]}]",
        "sources/more.yml": "sources: [{name: s, tables: [{name: b, format: json}]}]",
    }
    assert [table.full_name for table in load_good(tmp_path, files).sources] == ["s.a", "s.b"]


def test_precedence_of_variables(tmp_path: Path) -> None:
    """The command line overrides the variables of the target, which override the project's, also inside YAML."""
    text = """\
name: shop
default_target: "{{ var('where') }}"
vars: {a: 1, b: 1, c: 1, where: prod, made: "{{ var('a') }}-{{ var('c') }}"}
targets:
  dev: {storage: "{{ var('nowhere') }}"}
  prod: {storage: "s3://x/{{ var('b') }}/{{ target() }}", vars: {b: 2, c: 2}}
"""
    path = "{{ var('b') }}/{{ var('c') }}"
    sources = f'sources: [{{name: s, tables: [{{name: t, format: json, path: "{path}"}}]}}]'
    project = load_good(tmp_path, {"project.yml": text, "sources.yml": sources}, cli_vars={"c": 3})
    assert project.vars == {"a": 1, "b": 2, "c": 3, "where": "prod", "made": "1-3"}
    assert (project.target.name, project.target.storage) == ("prod", "s3://x/2/prod")
    assert project.sources[0].path == "2/3"


def test_an_expression_can_give_a_list(tmp_path: Path) -> None:
    """A value that is one Jinja expression keeps the expression's type, such as a list."""
    files = {
        "project.yml": "name: shop\nvars: {tags: [a, b]}\nmodels: {'+tags': \"{{ var('tags') }}\"}\n",
        "models/m.sql": "select 1",
    }
    (model,) = load_good(tmp_path, files).models
    config = merge_configs(model.configs).config
    assert config is not None
    assert config.tags == ("a", "b")


def test_target_overrides_sources_and_sinks(tmp_path: Path) -> None:
    """A target replaces keys of a source, a table or a sink; mappings merge by key, and values keep their locations."""
    text = """\
name: shop
targets:
  local:
    sources:
      s: {format: JSON, mode: batch}
      s.a: {path: elsewhere, options: {header: true}}
    sinks:
      lake: {path: "copy/{{ model.name }}"}
"""
    sources = "sources: [{name: s, format: json, tables: [{name: a, path: x, options: {sep: ;}}, {name: b, path: y}]}]"
    project = load_good(tmp_path, {"project.yml": text, "sources.yml": sources, "sinks.yml": SINKS})
    a, b = project.sources
    assert (a.mode, a.path, a.options) == ("batch", "elsewhere", {"sep": ";", "header": "true"})
    assert (b.mode, b.path, b.options) == ("batch", "y", {})
    assert a.locations["path"] == Location("project.yml", 6, 19)
    (sink,) = project.sinks
    assert (sink.path, sink.locations["path"]) == ("copy/{{ model.name }}", Location("project.yml", 8, 20))


KAFKA = """\
sources:
  - name: shop
    format: kafka
    options: {kafka.bootstrap.servers: broker, subscribe: orders}
    tables:
      - name: orders
        description: Orders as they are placed
        options: {startingOffsets: earliest}
        watermark: {column: timestamp, delay: 1 minute}
        tags: [core]
      - {name: returns, options: {subscribe: returns}}
sinks:
  - {name: lake, description: The lake, format: parquet, path: '{{ model.name }}', partition_by: day, options: {a: b}}
"""


def in_target(overrides: str) -> dict[str, str | bytes]:
    """Returns the files of a project whose only target has these overrides."""
    return {"project.yml": f"name: shop\ntargets:\n  local:\n{overrides}", "sources.yml": KAFKA}


def test_an_override_with_another_format_drops_old_options(tmp_path: Path) -> None:
    """An override with another format drops the old options of table and source; other keys and tables stay."""
    files = in_target(
        "    sources: {shop.orders: {format: json, path: in/orders, schema: timestamp timestamp, options: {}}}\n"
        "    sinks: {lake: {format: console}}\n"
    )

    project = load_good(tmp_path, files)

    orders, returns = project.sources
    assert (orders.format, orders.path, orders.options) == ("json", "in/orders", {})
    assert orders.spark_schema == Schema(Location("project.yml", 4, 68), ddl="timestamp timestamp")
    assert (orders.description, orders.tags) == ("Orders as they are placed", ("core",))
    assert orders.watermark is not None
    assert returns.format == "kafka"
    assert returns.options == {"kafka.bootstrap.servers": "broker", "subscribe": "returns"}
    (lake,) = project.sinks
    assert (lake.format, lake.path, lake.options, lake.partition_by) == ("console", None, {}, ())
    assert lake.description == "The lake"


def test_an_override_with_the_same_format_merges(tmp_path: Path) -> None:
    """An override with the same format, in any letter case or from Jinja, merges options by key."""
    files = in_target("    sources: {shop.orders: {format: Kafka, options: {startingOffsets: latest}}}\n")
    jinja = KAFKA.replace("format: kafka", "format: \"{{ var('format') }}\"")
    named: dict[str, str | bytes] = {"sources.yml": jinja}

    for each in (files, {**files, **named}):
        orders, _ = load_good(tmp_path, each, cli_vars={"format": "kafka"}).sources
        assert orders.options == {
            "kafka.bootstrap.servers": "broker",
            "subscribe": "orders",
            "startingOffsets": "latest",
        }


def test_a_format_is_read_in_any_letter_case(tmp_path: Path) -> None:
    """Formats of sources, tables, sinks and overrides are read in any letter case; Java classes keep theirs."""
    files = {
        **in_target("    sources: {shop.d: {format: Csv}}\n    sinks: {log: {format: Console}}\n"),
        "sources.yml": "sources:\n  - name: shop\n    format: JSON\n    tables: [{name: a}, {name: b, format: BinaryFile}, "
        "{name: c, format: org.example.Files}, {name: d}]\n",
        "sinks.yml": "sinks: [{name: lake, format: Parquet}, {name: log, format: json}]\n",
    }

    project = load_good(tmp_path, files)

    assert [table.format for table in project.sources] == ["json", "binaryFile", "org.example.Files", "csv"]
    assert [sink.format for sink in project.sinks] == ["parquet", "console"]


@pytest.mark.parametrize(
    ("override", "ddl"),
    [
        ("{schema: b int}", "b int"),
        ("{columns: [{name: b, data_type: int}]}", "`b` int"),
        ("{columns: [{name: a, description: The first}]}", "a int"),
        ("{schema_file: b.ddl}", "b int"),
        ("{schema: }", None),
        ("{path: elsewhere}", "a int"),
    ],
)
@pytest.mark.parametrize("declared", ["schema: a int", "schema_file: a.ddl", "columns: [{name: a, data_type: int}]"])
def test_an_override_replaces_the_complete_schema(
    tmp_path: Path, declared: str, override: str, ddl: str | None
) -> None:
    """An override replaces the complete schema, whichever of the three keys declare the old and the new one."""
    files: dict[str, str | bytes] = {
        "project.yml": f"name: a\ntargets:\n  local:\n    sources: {{s.t: {override}}}\n",
        "sources.yml": f"sources: [{{name: s, tables: [{{name: t, format: json, path: x, {declared}}}]}}]",
        "a.ddl": "a int",
        "b.ddl": "b int",
    }
    if "description" in override and declared.startswith("columns"):
        return  # a list replaces a list: the remaining columns have no types

    (table,) = load_good(tmp_path, files).sources

    assert (table.spark_schema and (table.spark_schema.ddl or "").replace("`a`", "a")) == ddl


def test_configuration_comes_from_folders_and_properties(tmp_path: Path) -> None:
    """Inner folders override outer ones, and properties override folders; tags add up, meta and options merge."""
    text = """\
name: shop
models:
  +tags: all
  +trigger: 10 seconds
  shop:
    +meta: {a: 1, b: 1}
    orders:
      +tags: [orders]
      +meta: {b: 2}
      enabled: false
      daily: {+options: {n: 010}}
"""
    properties = """\
models:
  - name: daily
    description: One row per day
    tags: top
    meta: {c: 3}
    config: {tags: [inner], trigger: available_now, options: {m: 1.50}}
    columns: [{name: day, data_type: date, description: The day}]
"""
    files = {"project.yml": text, "models/orders/daily.sql": "select 1", "models/_m.yml": properties}
    (model,) = load_good(tmp_path, files).models
    merged = merge_configs(model.configs)
    assert merged.config is not None
    assert merged.config.tags == ("all", "orders", "top", "inner")
    assert merged.config.meta == {"a": 1, "b": 2, "c": 3}
    assert merged.config.options == {"n": "010", "m": "1.50"}
    assert (merged.config.enabled, merged.config.trigger) == (False, Trigger("available_now"))
    assert merged.locations["trigger"] == Location("models/_m.yml", 6, 38)
    assert merged.locations["enabled"] == Location("project.yml", 10, 16)
    assert (model.description, model.columns) == (
        "One row per day",
        (ModelColumn(name="day", data_type="date", description="The day"),),
    )


def test_folder_with_the_name_of_the_project(tmp_path: Path) -> None:
    """A configuration key with the project's name applies to a folder of that name, if one exists."""
    files = {
        "project.yml": "name: shop\nmodels: {shop: {+tags: inside}}\n",
        "models/shop/a.sql": "select 1",
        "models/b.sql": "select 1",
    }
    a, b = load_good(tmp_path, files).models
    assert len(a.configs) == 1
    assert b.configs == ()


def test_seed_has_its_properties(tmp_path: Path) -> None:
    """A seed has its typed columns, and its configuration from folders and properties."""
    files = {
        "project.yml": "name: shop\nseeds: {+tags: [all]}\n",
        "seeds/zips.csv": "zip,city\n",
        "seeds/old.csv": "a\n",
        "seeds/_s.yml": "seeds:\n  - {name: zips, tags: geo, columns: [{name: zip, data_type: string}, {name: city}]}\n"
        "  - {name: old, config: {enabled: false}}\n",
    }
    (seed,) = load_good(tmp_path, files).seeds
    assert seed.columns == (DeclaredColumn(name="zip", data_type="string"),)
    assert seed.config["tags"].value == ["all", "geo"]


def test_keys_without_a_value_are_left_out(tmp_path: Path) -> None:
    """A key without a value, which is common in hand-written YAML, counts as missing."""
    files = {
        "project.yml": "name: shop\nvars:\ntargets:\n  local:\nmodels:\n",
        "sources.yml": "version: 2\nsources:\nsinks:\n",
    }
    assert load_good(tmp_path, files).target.name == "local"


def test_requested_target_overrides_the_default(tmp_path: Path) -> None:
    """--target overrides the default of project.yml."""
    files = {"project.yml": "name: shop\ndefault_target: a\ntargets: {a: {}, b: {remote: sc://host:15002}}\n"}
    assert load_good(tmp_path, files).target.name == "a"
    assert load_good(tmp_path, files, target="b").target.remote == "sc://host:15002"


def test_a_project_with_warnings_is_loaded(tmp_path: Path) -> None:
    """Configuration that applies to nothing gives a warning, and the project still loads."""
    files = {
        "project.yml": "name: shop\nmodels:\n  ordres: {+tags: a, deeper: {+tags: b}}\n",
        "models/orders/a.sql": "select 1",
        "models/_m.yml": "models:\n  - name: b\n",
    }
    result = load(tmp_path, files)
    assert result.project is not None
    assert [(finding.code, str(finding.location), finding.is_error) for finding in result.findings] == [
        ("unused-config", "models/_m.yml:2:11", False),
        ("unused-config", "project.yml:3:3", False),
    ]
    assert result.findings[1].fix == "did you mean `orders`?"


@pytest.mark.parametrize(
    ("master", "is_local"),
    [
        ("local", True),
        ("local[*]", True),
        ("local-cluster[2,1,1024]", True),
        ("locally", False),
        ("spark://local:7077", False),
        ("yarn", False),
    ],
)
def test_a_target_knows_whether_it_is_local(master: str, is_local: bool) -> None:
    """A local target may have a relative storage folder, because all of Spark is on this machine."""
    target = Target(name="t", master=master, storage="store", location=Location("project.yml"))

    assert target.is_local is is_local


def test_a_missing_space_after_a_colon_has_a_fix(tmp_path: Path) -> None:
    """For `{header:true}`, which YAML reads as a key without a value, the fix adds a space after the colon."""
    text = "sources: [{name: s, tables: [{name: t, format: csv, path: in, schema: a int, options: {header:true}}]}]\n"
    (found,) = load(tmp_path, {"sources.yml": text}).findings

    assert (found.code, found.fix) == ("invalid-value", "add a space after the colon: `header: true`")


def test_a_source_of_changes_has_their_columns(tmp_path: Path) -> None:
    """`changes` sets Delta's option and adds the columns of changes that a schema lacks, in DDL and in JSON."""
    struct = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    tables = (
        "{name: a, path: in/a, changes: true, schema: 'id int'}",
        "{name: b, path: in/b, changes: true, schema_file: b.json, options: {READCHANGEFEED: true}}",
        "{name: c, path: in/c, changes: true, schema: '_commit_version bigint, ID int -- the key'}",
        "{name: d, path: in/d, changes: true}",
        "{name: e, path: in/e, changes: false, schema: 'id int'}",
    )
    text = "sources:\n  - name: lake\n    format: delta\n    tables:\n" + "".join(
        f"      - {each}\n" for each in tables
    )

    found = load_good(tmp_path, {"sources.yml": text, "b.json": json.dumps(struct)}).sources

    columns = [[(field.name, str(field.type)) for field in fields_of(table.spark_schema)] for table in found]
    version = ("_commit_version", "bigint")
    added = [("_change_type", "string"), version, ("_commit_timestamp", "timestamp")]
    others = [added[0], added[2]]
    assert columns == [
        [("id", "int"), *added],
        [("id", "bigint"), *added],
        [version, ("ID", "int"), *others],
        [],
        [("id", "int")],
    ]
    options = {"readChangeFeed": "true"}
    assert [dict(table.options) for table in found] == [options, {"READCHANGEFEED": "true"}, options, options, {}]
    assert found[1].spark_schema is not None
    assert json.loads(found[1].spark_schema.json or "")["fields"][2]["type"] == "long"
    assert [table.reads_changes for table in found] == [True, True, True, True, False]
