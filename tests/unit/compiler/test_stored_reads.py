"""What queries know about stored models: what they read, and what storage keeps of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models
from sqlstream.app.compile.emission_text import reads_lines
from sqlstream.app.compile.explain_model import explain_model
from sqlstream.app.loading.load import try_load
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.emission import ModelRead
from sqlstream.compiler.outputs import stages, stored_inputs
from sqlstream.state.readers import source_uses

BRONZE = "{{ config(sink='lake', materialized='stored') }}\nselect /*+ WATERMARK(at, '1 hour') */ id, at, kind from {{ source('shop', 'orders') }}"
CLEAN = "{{ config(deduplicate=['id']) }} select * from {{ ref('bronze') }}"
SILVER = "{{ config(sink='lake', materialized='stored') }} select id, kind from {{ ref('clean') }}"
OTHER = (
    "{{ config(sink='lake') }} select a.id, b.kind from {{ ref('clean') }} a join {{ ref('silver') }} b on a.id = b.id"
)
TOTALS = "{{ config(sink='lake', materialized='stored', output_mode='complete') }} select kind, count(*) as n from {{ ref('silver') }} group by kind"
REPORT = "{{ config(sink='lake') }} select * from {{ ref('totals') }} order by n"
MODELS = {"bronze": BRONZE, "clean": CLEAN, "silver": SILVER, "other": OTHER, "totals": TOTALS, "report": REPORT}


def write(root: Path, models: dict[str, str]) -> None:
    """Writes a project with these models."""
    files = {
        "project.yml": "name: shop\ntargets: {local: {master: local, storage: store}}\n",
        "sources.yml": "sources:\n  - name: shop\n    tables:\n"
        "      - {name: orders, format: json, path: in, schema: 'id int, at timestamp, kind string, amount double'}\n",
        "sinks.yml": "sinks:\n  - {name: lake, format: parquet, path: '{{ model.name }}'}\n",
        **{f"models/{name}.sql": text for name, text in models.items()},
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def compiled(tmp_path: Path) -> CompiledProject:
    """A project of four stages."""
    write(tmp_path, MODELS)
    return compile_models(ProjectRequest(tmp_path)).loaded.compiled


def named(compiled: CompiledProject, name: str) -> CompiledModel:
    """Returns a model by its name."""
    return compiled.models[f"model.shop.{name}"]


def test_a_query_ends_at_the_stored_outputs_that_it_reads(compiled: CompiledProject) -> None:
    """A query contains the views between it and stored outputs, and nothing above them; the graph still does."""
    assert compiled.upstream("model.shop.silver") == {"model.shop.clean", "stored.shop.bronze"}
    assert "source.shop.shop.orders" in compiled.graph.ancestors("model.shop.silver")
    assert stored_inputs(compiled, named(compiled, "other")) == ("bronze", "silver")


def test_readers_are_named_after_the_stored_model(compiled: CompiledProject) -> None:
    """Each reference has its own reader, named after the model, which the ledger keeps."""
    uses = source_uses(compiled, named(compiled, "other"))

    assert [(use.name, use.table, use.stored) for use in uses] == [
        ("bronze", "bronze", True),
        ("silver", "silver", True),
    ]


def test_only_a_growing_output_is_a_stream(compiled: CompiledProject) -> None:
    """An output in append mode is read as a stream; one in complete mode is a static table, so its readers are batches."""
    assert [compiled.stored[f"stored.shop.{name}"].mode for name in ("silver", "totals")] == ["stream", "batch"]
    assert (named(compiled, "totals").kind, named(compiled, "report").kind) == ("stream", "batch")


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_table_with_a_key_is_a_static_table(tmp_path: Path, format_: str) -> None:
    """Rows of a table with a key change, also in append mode, which would end a stream over it."""
    keyed = BRONZE.replace("'lake'", "'tables', unique_key='id'")
    write(tmp_path, {"bronze": keyed, "added": BRONZE.replace("'lake'", "'tables'"), "clean": CLEAN, "silver": SILVER})
    with (tmp_path / "sinks.yml").open("a") as sinks:
        sinks.write(f"  - {{name: tables, format: {format_}, path: '{{{{ model.name }}}}'}}\n")

    compiled = try_load(ProjectRequest(tmp_path)).readable().compiled

    assert [compiled.stored[f"stored.shop.{name}"].mode for name in ("bronze", "added")] == ["batch", "stream"]
    assert (named(compiled, "bronze").kind, named(compiled, "silver").kind) == ("stream", "batch")


def test_storage_keeps_types_and_lineage_but_no_watermark(compiled: CompiledProject) -> None:
    """A stored output has the columns of its model and their origins, and none of its watermarks."""
    schema = compiled.stored["stored.shop.bronze"].spark_schema
    assert schema is not None
    assert schema.ddl == "id int, `at` timestamp, kind string"
    before, after = (
        {column.name: column for column in compiled.columns[f"model.shop.{name}"] or ()} for name in ("bronze", "clean")
    )
    assert (before["at"].event_time is None, after["at"].event_time is None) == (False, True)
    assert after["at"].origins == before["at"].origins == {("source.shop.shop.orders", "at")}


def test_a_missing_watermark_names_the_reason(tmp_path: Path) -> None:
    """An aggregation over a stored output needs its own watermark, even if the stored model has one."""
    counts = "{{ config(sink='lake') }} select count(*) as n from {{ ref('bronze') }} group by window(at, '1 hour')"
    write(tmp_path, {"bronze": BRONZE, "counts": counts})

    with pytest.raises(FindingsError) as caught:
        compile_models(ProjectRequest(tmp_path))

    (finding,) = caught.value.findings
    assert finding.code == "append-without-watermark"
    assert finding.why.endswith("a stored output keeps rows, but no watermark")
    write(tmp_path, {"counts": counts.replace("select", "select /*+ WATERMARK(at, '1 hour') */")})
    compile_models(ProjectRequest(tmp_path))


def test_a_run_has_stages(compiled: CompiledProject) -> None:
    """A query is in a later stage than the stored models of the run that it reads."""
    models = [named(compiled, name) for name in ("report", "totals", "silver", "other", "bronze")]
    names = [[model.name for model in stage] for stage in stages(compiled, models)]
    assert names == [["bronze"], ["silver"], ["totals", "other"], ["report"]]
    assert stages(compiled, models[:1]) == [models[:1]]


def test_an_explanation_says_how_a_query_reads_each_model(compiled: CompiledProject) -> None:
    """A view that several queries compute keeps its state in each of them; a stored output is read."""
    found = explain_model(ProjectRequest(compiled.project.root), "other").reads

    assert found == (
        ModelRead("clean", is_stored=False, queries=2, state=("deduplication",)),
        ModelRead("bronze", is_stored=True, queries=2),
        ModelRead("silver", is_stored=True, queries=2),
    )
    lines = reads_lines(found)
    assert lines[1] == "  clean: this query and 1 more query compute it, each with its own state of deduplication"
    assert lines[3] == "  bronze: its stored output; 1 more query reads it"


def test_state_that_several_queries_keep_is_said(tmp_path: Path) -> None:
    """A view that deduplicates for two queries is an info at its own place; state that one query keeps is not."""
    write(tmp_path, MODELS)
    (found,) = (item for item in try_load(ProjectRequest(tmp_path)).findings if item.code == "repeated-state")

    assert str(found.location) == "models/clean.sql:1:11"
    assert found.message == "2 queries keep the state of this operator: `silver`, `other`"
    assert "keeps the state of its deduplication" in found.why

    write(tmp_path, {"clean": CLEAN.replace("config(", "config(sink='lake', materialized='stored', ")})
    assert "repeated-state" not in {item.code for item in try_load(ProjectRequest(tmp_path)).findings}


@pytest.mark.parametrize(("fan_out", "count"), [("separate", 1), ("shared", 0)])
def test_several_sinks_of_a_model_repeat_its_state(tmp_path: Path, fan_out: str, count: int) -> None:
    """Each query of a further sink has a copy of the state; a shared query has one."""
    text = f"{{{{ config(sink=['lake', 'more'], fan_out='{fan_out}', output_mode='complete') }}}}\n"
    write(tmp_path, {"counts": text + "select kind, count(*) as n from {{ source('shop', 'orders') }} group by kind"})
    (tmp_path / "models/_more.yml").write_text("sinks: [{name: more, format: console}]\n")

    found = [item for item in try_load(ProjectRequest(tmp_path)).findings if item.code == "repeated-state"]
    assert len(found) == count


STORED = "{{{{ config(sink='out', materialized='stored'{config}) }}}} select {columns} from {{{{ source('shop', 'orders') }}}}"
READER = "{{ config(sink='lake') }} select * from {{ ref('one') }}"
TIMES = "timestampFormat: \"yyyy-MM-dd'T'HH:mm:ss"


def places_of(root: Path, sink: str, columns: str, config: str = "", zone: str = "UTC") -> list[str]:
    """Returns the codes and locations of the findings for a stored model in a sink."""
    write(root, {"one": STORED.format(columns=columns, config=config), "reader": READER})
    (root / "sinks.yml").write_text(
        f"sinks:\n  - {{name: lake, format: parquet, path: '{{{{ model.name }}}}'}}\n"
        f"  - {{name: out, path: '{{{{ model.name }}}}', {sink}}}\n"
    )
    zones = f"{{spark.sql.session.timeZone: {zone}}}"
    (root / "project.yml").write_text(f"name: shop\ntargets: {{local: {{storage: store, spark: {zones}}}}}\n")
    findings = try_load(ProjectRequest(root)).findings
    return [f"{each.code} {each.location}" for each in findings]


@pytest.mark.parametrize(
    ("sink", "columns", "config", "zone"),
    [
        ("format: parquet", "id, at, kind", "", "Europe/Berlin"),
        ("format: parquet", "*", ", partition_by=['kind', 'id']", "Europe/Berlin"),
        ("format: parquet", "*", ", partition_by=['at']", "+01:00"),
        ("format: json", "id, at, kind, map(kind, at) as m", "", "Europe/Berlin"),
        ("format: csv", "id, at", "", "Europe/Berlin"),
        ("format: json, options: {TIMESTAMPFORMAT: 'yyyy-MM-dd HH:mm:ss.SSSSSS'}", "at", "", "UTC"),
        ("format: json, options: {" + TIMES + '.SSSSSSXXXXX"}', "at", "", "Europe/Berlin"),
        ("format: csv, options: {nullValue: 'null'}", "id, at, amount", "", "UTC"),
        ("format: xml, options: {rowTag: row, ignoreSurroundingSpaces: false}", "kind", "", "UTC"),
    ],
)
def test_a_sink_that_keeps_all_values_can_be_read(
    tmp_path: Path, sink: str, columns: str, config: str, zone: str
) -> None:
    """A stored model can be in each sink that keeps all values of its types, with the options of the sink."""
    assert places_of(tmp_path, sink, columns, config, zone) == []


@pytest.mark.parametrize(
    ("sink", "columns", "config", "zone"),
    [
        ("format: parquet", "*", ", partition_by=['at']", "Europe/Berlin"),
        ("format: parquet", "id, cast(kind as binary) as b", ", partition_by=['b']", "UTC"),
        ("format: csv", "id, kind", "", "UTC"),
        ("format: text", "kind", "", "UTC"),
        ("format: json", "map(id, kind) as m", "", "UTC"),
        ("format: json, options: {" + TIMES + '.SSSXXXXX"}', "at", "", "UTC"),
        ("format: json, options: {" + TIMES + '.SSSSSS"}', "array(at) as a", "", "Europe/Berlin"),
        ("format: json, options: {encoding: US-ASCII}", "kind", "", "UTC"),
        ("format: csv, options: {nullValue: '0'}", "id", "", "UTC"),
        ("format: csv, options: {nullValue: '2024-01-01'}", "at", "", "UTC"),
        ("format: csv, options: {dateFormat: yyyy-MM}", "cast(at as date) as day", "", "UTC"),
        ("format: xml, options: {rowTag: row}", "struct(kind) as s", "", "UTC"),
    ],
)
def test_a_sink_that_changes_values_is_refused(tmp_path: Path, sink: str, columns: str, config: str, zone: str) -> None:
    """A stored model is refused if its readers would get other values, at the key that decides it."""
    (found,) = places_of(tmp_path, sink, columns, config, zone)

    assert found.startswith("stored-model models/one.sql:1:")
