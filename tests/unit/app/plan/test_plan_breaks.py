"""What a changed query breaks downstream: its sinks, the queries that read it, and exposures. Without Java."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.plan.breaks import with_breaks
from sqlstream.app.request import ProjectRequest
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.state.changed_columns import ColumnDifference
from sqlstream.state.ledger import OutputColumn
from sqlstream.state.verdicts import QueryVerdict, Verdict

FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": "sources: [{name: web, tables: [{name: clicks, format: json, path: in, schema: 'id int, x int'}]}]\n",
    "sinks.yml": "sinks:\n  - {name: lake, format: parquet, path: '{{ model.name }}'}\n"
    "  - {name: topic, format: kafka, options: {kafka.bootstrap.servers: 'h:1', topic: '{{ model.name }}'}}\n",
    "models/stored.sql": "{{ config(sink='lake', materialized='stored') }} select id, x from {{ source('web', 'clicks') }}\n",
    "models/between.sql": "select id from {{ ref('stored') }}\n",
    "models/reader.sql": "{{ config(sink='lake') }} select id from {{ ref('between') }}\n",
    "models/copy.sql": "{{ config(sink='topic') }} select to_json(struct(*)) as value from {{ ref('stored') }}\n",
    "models/other.sql": "{{ config(sink=['topic', 'lake'], fan_out='shared') }} select cast(id as string) as value "
    "from {{ source('web', 'clicks') }}\n",
    "models/inlined.sql": "{{ config(sink='lake') }} select value from {{ ref('other') }}\n",
    "models/_exposures.yml": """
exposures:
  - {name: direct, type: dashboard, owner: {name: Ada}, depends_on: [ref('stored')]}
  - {name: indirect, type: ml, owner: {email: [a@example.com, b@example.com]}, depends_on: [ref('reader')]}
  - {name: apart, type: analysis, owner: {name: Ada}, depends_on: [ref('other')]}
""",
}
REMOVED = ColumnDifference(OutputColumn("x", "int"), None)
RETYPED = ColumnDifference(OutputColumn("x", "int"), OutputColumn("x", "string"))
NEW = ColumnDifference(None, OutputColumn("y", "int"))


@pytest.fixture
def compiled(tmp_path: Path) -> CompiledProject:
    """A project with a stored model, its readers and exposures."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return load_for_reading(ProjectRequest(tmp_path)).compiled


def breaks(
    compiled: CompiledProject, verdict: QueryVerdict, others: Mapping[str, tuple[ColumnDifference, ...]] | None = None
) -> list[str]:
    """Returns what a query breaks, one text each. `others` are the differences of queries that are not planned."""

    def find(model: CompiledModel) -> tuple[ColumnDifference, ...]:
        return (others or {}).get(model.name, ())

    (found,) = with_breaks(compiled, [verdict], find)
    return [f"{each.kind} {each.name}: {each.reason}" for each in found.breaks]


def verdict(model: str, kind: Verdict, *differences: ColumnDifference, version: int = 1) -> QueryVerdict:
    """Returns the verdict on a query that has a checkpoint."""
    return QueryVerdict(model, kind, "because", version, 3, differences=differences)


def test_a_removed_column(compiled: CompiledProject) -> None:
    """A removed column concerns the sink, the readers of the stored output, and the exposures of all of them."""
    assert breaks(compiled, verdict("stored", Verdict.RESUME, REMOVED, NEW)) == [
        "sink lake: column `x` was removed",
        "model copy: it reads the stored output of `stored`, whose column `x` was removed",
        "model reader: it reads the stored output of `stored`, whose column `x` was removed",
        "exposure direct: it reads `stored`, whose column `x` was removed",
        "exposure indirect: it reads `reader`, which reads the stored output of `stored`, whose column `x` was removed",
    ]


def test_another_type_that_a_reader_passes_on(compiled: CompiledProject) -> None:
    """A reader whose own columns change is named for them, also if the selection leaves it out."""
    found = breaks(compiled, verdict("stored", Verdict.RESUME, RETYPED), {"reader": (RETYPED,)})

    assert found[2] == "model reader: its column `x` was int, and is now string"
    assert found[4] == "exposure indirect: it reads `reader`, whose column `x` was int, and is now string"


def test_a_query_that_starts_over(compiled: CompiledProject) -> None:
    """A query that must start over breaks the readers of its stored output, even if its columns are the same."""
    assert breaks(compiled, verdict("stored", Verdict.REFUSE)) == [
        "sink lake: a full refresh writes its rows to a new version of the output",
        "model copy: it reads the stored output of `stored`, and must start over after a full refresh of it",
        "model reader: it reads the stored output of `stored`, and must start over after a full refresh of it",
        "exposure direct: it reads `stored`, which starts over with a full refresh",
        (
            "exposure indirect: it reads `reader`, which reads the stored output of `stored`, and must start over after a "
            "full refresh of it"
        ),
    ]


def test_a_query_that_others_compute_themselves(compiled: CompiledProject) -> None:
    """A query that reads a view has its own rows, so a full refresh of another query does not concern it."""
    assert breaks(compiled, verdict("other", Verdict.REFUSE)) == [
        "sink topic: a full refresh writes all rows to it again",
        "sink lake: a full refresh writes its rows to a new version of the output",
        "exposure apart: it reads `other`, which starts over with a full refresh",
    ]


@pytest.mark.parametrize(
    "harmless",
    [
        verdict("stored", Verdict.RESUME, NEW),
        verdict("stored", Verdict.UNCHANGED),
        verdict("stored", Verdict.NEW, version=0),
        verdict("gone", Verdict.REMOVED),
        QueryVerdict("stored", Verdict.REFUSE, "", 2, 1, differences=(REMOVED,), is_parallel=True),
    ],
)
def test_what_breaks_nothing(compiled: CompiledProject, harmless: QueryVerdict) -> None:
    """A new column breaks nothing, nor does a query without a checkpoint or one in parallel with the current version."""
    assert breaks(compiled, harmless) == []


def test_a_changed_contract_names_its_readers(compiled: CompiledProject) -> None:
    """What breaks a contract is listed with the models and exposures downstream, and the owners of these."""
    stored = QueryVerdict("stored", Verdict.RESUME, "", 1, 1, contract_breaks=("column `x` can be null",))
    other = replace(stored, model="reader")
    alone = replace(stored, model="copy")

    (text,) = breaks(compiled, stored)
    assert text.startswith("contract stored: column `x` can be null; read by ")
    for name in ("`between`", "`reader`", "`copy`", "exposures `direct` of Ada, `indirect` of a@example.com"):
        assert name in text
    assert breaks(compiled, other)[0].endswith("; read by exposure `indirect` of a@example.com, b@example.com")
    assert breaks(compiled, alone)[0].endswith("; nothing in the project reads it")
