"""Models with several sinks."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.loading.load import LoadAttempt, try_load

FILES = {
    "project.yml": "name: shop\ntargets: {local: {master: local, storage: store}}\n",
    "sources.yml": "sources:\n  - name: shop\n    tables:\n"
    "      - {name: orders, format: json, path: in, schema: 'id int, kind string'}\n",
    "sinks.yml": "sinks:\n  - {name: archive, format: parquet, path: '{{ model.name }}'}\n"
    "  - {name: stats, format: json, path: 'stats/{{ model.name }}'}\n"
    "  - {name: same, format: json, path: '{{ model.name }}'}\n  - {name: screen, format: console}\n",
}


def loaded(folder: Path, config: str, select: str = "*", **models: str) -> LoadAttempt:
    """Compiles a model `orders` with a configuration, and other models."""
    orders = f"{{{{ config({config}) }}}} select {select} from {{{{ source('shop', 'orders') }}}}"
    for name, text in {**FILES, "models/orders.sql": orders, **models}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return try_load(ProjectRequest(folder))


def test_each_further_sink_has_a_query(tmp_path: Path) -> None:
    """The first sink belongs to the query of the model; the others share its configuration and its name in paths."""
    config = "sink=['archive', 'stats', 'screen'], trigger='1 minute', checkpoint='kept', tags=['daily']"
    models = loaded(tmp_path, config).readable().compiled.models.values()

    written = {model.name: (model.output.sink, model.output.path) for model in models if model.output is not None}
    assert written == {
        "orders": ("archive", "orders"),
        "orders__stats": ("stats", "stats/orders"),
        "orders__screen": ("screen", None),
    }
    assert {str(model.config.trigger) for model in models} == {"1 minute"}
    assert {model.config.checkpoint for model in models} == {"kept", "kept__stats", "kept__screen"}
    assert {model.config.tags for model in models} == {("daily",)}


def test_a_rename_keeps_the_outputs_of_all_sinks(tmp_path: Path) -> None:
    """With `previous_name`, each query keeps its checkpoint and its output, also of a further sink."""
    config = "sink=['archive', 'stats'], previous_name='sales'"
    models = loaded(tmp_path, config).readable().compiled.models.values()

    kept = {model.query_id: model.output.path for model in models if model.output is not None}
    assert kept == {"sales": "sales", "sales__stats": "stats/sales"}


def test_one_sink_in_a_list_is_one_query(tmp_path: Path) -> None:
    """A list of one sink means the same as its name."""
    (model,) = loaded(tmp_path, "sink=['archive']").readable().compiled.models.values()

    assert model.output is not None
    assert (model.name, model.output.sink) == ("orders", "archive")


@pytest.mark.parametrize(
    ("sinks", "select", "codes"),
    [
        (["archive", "lake"], "*", ["unknown-sink"]),
        (["archive", "same"], "*", ["shared-output"]),
        (["archive", "archive"], "*", ["invalid-value"]),
        ([], "*", ["invalid-value"]),
        (["archive", "stats"], "count(*) as n", ["append-without-watermark"]),
    ],
)
def test_each_error_is_reported_once(tmp_path: Path, sinks: list[str], select: str, codes: list[str]) -> None:
    """An error of one sink, or of the query that all sinks share, is one finding at the model."""
    findings = [finding for finding in loaded(tmp_path, f"sink={sinks}", select).findings if finding.is_error]

    assert [finding.code for finding in findings] == codes
    assert {finding.location.path for finding in findings if finding.location} == {"models/orders.sql"}


def test_the_name_of_a_query_must_be_free(tmp_path: Path) -> None:
    """A model with the name of such a query is an error."""
    other = {"models/orders__stats.sql": "{{ config(sink='screen') }} select 1 as one"}
    attempt = loaded(tmp_path, "sink=['archive', 'stats']", **other)

    assert "duplicate-name" in {finding.code for finding in attempt.findings}


def test_the_cache_keeps_the_queries_of_further_sinks(tmp_path: Path) -> None:
    """A second compilation of an unchanged project writes nothing to the cache."""
    for _ in range(2):
        loaded(tmp_path, "sink=['archive', 'stats']")
    before = (tmp_path / "target/cache.sqlite").read_bytes()

    loaded(tmp_path, "sink=['archive', 'stats']")

    assert (tmp_path / "target/cache.sqlite").read_bytes() == before


def test_further_sinks_of_a_stored_model_read_its_output(tmp_path: Path) -> None:
    """The model is computed once, and only its own query stores it."""
    compiled = loaded(tmp_path, "sink=['archive', 'stats'], materialized='stored'").readable().compiled

    assert [model.config.materialized for model in compiled.models.values()] == ["stored", "view"]
    assert [read.node_id for read in compiled.models["model.shop.orders__stats"].reads] == ["stored.shop.orders"]


def test_shared_sinks_belong_to_one_query(tmp_path: Path) -> None:
    """With `fan_out: shared` the query of the model has all outputs, and no other query exists."""
    compiled = loaded(tmp_path, "sink=['archive', 'stats'], fan_out='shared'").readable().compiled

    (model,) = compiled.models.values()
    assert [(output.sink, output.path) for output in model.outputs] == [
        ("archive", "orders"),
        ("stats", "stats/orders"),
    ]


@pytest.mark.parametrize(
    ("config", "select", "codes"),
    [
        ("sink=['archive', 'lake']", "*", ["unknown-sink"]),
        ("sink=['archive', 'same']", "*", ["shared-output"]),
        ("sink=['archive', 'kept']", "*", ["fan-out"]),
        ("sink=['screen', 'foreign']", "*", ["fan-out"]),
        ("sink=['screen', 'archive'], output_mode='update'", "kind, count(*) as n group by kind", ["output-mode"]),
        ("sink=['screen', 'nowhere'], trigger={'continuous': '1 second'}", "*", ["continuous-trigger"] * 2),
        ("sink=['screen', 'nowhere'], trigger={'real_time': '1 minute'}, output_mode='update'", "*", None),
        ("sink=['archive', 'screen'], unique_key='nothing'", "*", ["unknown-column"]),
        ("sink=['archive', 'screen'], sequence_by='id'", "*", ["missing-key", "row-order", "row-order"]),
        ("sink='archive'", "*", []),
    ],
)
def test_a_shared_query_fits_all_its_sinks(tmp_path: Path, config: str, select: str, codes: list[str] | None) -> None:
    """Each sink must take batches from a query that has others, in the query's mode."""
    columns, _, end = select.partition(" group by ")
    sinks = FILES["sinks.yml"] + "  - {name: kept, format: memory}\n  - {name: foreign, format: com.example.sink}\n"
    model = f"{{{{ config({config}, fan_out='shared') }}}} select {columns} from {{{{ source('shop', 'orders') }}}}"
    files = {
        "sinks.yml": f"{sinks}  - {{name: nowhere, format: noop}}\n",
        "models/orders.sql": f"{model} group by {end}" if end else model,
    }
    findings = [finding for finding in loaded(tmp_path, config, **files).findings if finding.is_error]

    assert [finding.code for finding in findings] == codes or (codes is None and "real-time-trigger" in str(findings))


def test_a_batch_model_shares_nothing(tmp_path: Path) -> None:
    """A batch model writes to each sink on its own."""
    batch = FILES["sources.yml"].replace("format: json", "mode: batch, format: json")
    attempt = loaded(tmp_path, "sink=['archive', 'stats'], fan_out='shared'", **{"sources.yml": batch})

    assert [finding.code for finding in attempt.findings if finding.is_error] == ["fan-out"]
