"""Which quarantines a run includes, and when they end."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.app.compile.compile import compile_models
from sqlstream.app.loading.load import load
from sqlstream.app.loading.selected_queries import add_quarantines, quarantines_to_end
from sqlstream.app.loading.selecting import select, terminal_models
from sqlstream.app.request import ProjectRequest, Selection
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import FindingsError
from tests.support.compiling import write_files

TABLE = "{{name: {}, format: json, path: in, schema: id int, on_corrupt: quarantine, quarantine_sink: {}}}"
FILES = {
    "project.yml": "name: p\nversion: 1.0.0\n",
    "sources.yml": f"sources:\n  - name: s\n    tables:\n      - {TABLE.format('a', 'lake')}\n"
    f"      - {TABLE.format('b', 'lake')}\n      - {{name: c, format: rate}}\n",
    "sinks.yml": "sinks:\n  - {name: lake, format: parquet, path: '{{ model.name }}'}\n",
    "models/view.sql": "select id from {{ source('s', 'a') }}",
    "models/direct.sql": "{{ config(sink='lake', trigger='available_now') }} select id from {{ source('s', 'b') }}",
    "models/behind.sql": "{{ config(sink='lake', trigger='once') }} select id from {{ ref('view') }}",
    "models/other.sql": "{{ config(sink='lake') }} select value from {{ source('s', 'c') }}",
}


def chosen(root: Path, select_: str, exclude: str = "") -> tuple[CompiledModel, ...]:
    """Returns the models of a run with this selection."""
    write_files(root, FILES)
    compiled = load(ProjectRequest(root, env={})).compiled
    selection = Selection(tuple(select_.split()), tuple(exclude.split()))
    models = terminal_models(compiled, select(compiled, selection)[0])
    return add_quarantines(compiled, models, selection)


@pytest.mark.parametrize(
    ("selected", "excluded", "expected"),
    [
        ("direct", "", {"direct", "s__b__corrupt"}),
        ("behind", "", {"behind", "s__a__corrupt"}),
        ("other", "", {"other"}),
        ("s__a__corrupt", "", {"s__a__corrupt"}),
        ("", "", {"direct", "behind", "other", "s__a__corrupt", "s__b__corrupt"}),
        ("direct behind", "s__b__corrupt", {"direct", "behind", "s__a__corrupt"}),
    ],
)
def test_a_run_includes_quarantines_of_its_sources(
    selected: str, excluded: str, expected: set[str], tmp_path: Path
) -> None:
    """A run includes the quarantines of the sources that it reads, also through views, unless they are excluded."""
    assert {model.name for model in chosen(tmp_path, selected, excluded)} == expected


SELECTORS = """selectors:
  - name: without_a
    definition: {union: [direct, behind, exclude: [s__a__corrupt]]}
  - name: of_direct
    definition: {method: fqn, value: direct, exclude: [s__b__corrupt]}
  - name: both
    default: true
    definition: {union: [behind, 'selector:of_direct']}
"""


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(selector="without_a"), {"direct", "behind", "s__b__corrupt"}),
        (Selection(selector="of_direct"), {"direct"}),
        (Selection(selector="both"), {"direct", "behind", "s__a__corrupt"}),
        (Selection(), {"direct", "behind", "s__a__corrupt"}),
        (Selection(("selector:of_direct",)), {"direct"}),
        (Selection(("selector:of_direct", "s__b__corrupt")), {"direct", "s__b__corrupt"}),
    ],
)
def test_an_exclude_in_selectors_excludes_a_quarantine(
    selection: Selection, expected: set[str], tmp_path: Path
) -> None:
    """An `exclude` works like --exclude in the used selector, in one that it refers to, and in the default."""
    write_files(tmp_path, {**FILES, "selectors.yml": SELECTORS})
    compiled = load(ProjectRequest(tmp_path, env={})).compiled

    models = terminal_models(compiled, select(compiled, selection)[0])

    assert {model.name for model in add_quarantines(compiled, models, selection)} == expected


@pytest.mark.parametrize(
    ("selected", "ending"), [("direct behind", 2), ("direct other", 0), ("s__a__corrupt", 0), ("other", 0)]
)
def test_a_quarantine_ends_with_the_other_queries(selected: str, ending: int, tmp_path: Path) -> None:
    """A quarantine ends with the other queries, so that the run can end; on its own it follows its trigger."""
    assert len(quarantines_to_end(chosen(tmp_path, selected))) == ending


def test_an_undeclared_sink_of_a_quarantine_is_located(tmp_path: Path) -> None:
    """An undeclared sink of a quarantine is reported where it is named, as for any model."""
    write_files(
        tmp_path,
        {**FILES, "sources.yml": FILES["sources.yml"].replace("quarantine_sink: lake", "quarantine_sink: lak", 1)},
    )

    with pytest.raises(FindingsError) as raised:
        load(ProjectRequest(tmp_path, env={}))

    (finding,) = raised.value.findings
    assert (finding.code, str(finding.location)) == ("unknown-sink", "sources.yml:4:100")


def test_the_sql_of_a_quarantine_is_written(tmp_path: Path) -> None:
    """The compiled SQL of a quarantine is below the YAML file that declares it; its table is not a source."""
    write_files(tmp_path, FILES)

    compile_models(ProjectRequest(tmp_path, env={}))

    text = (tmp_path / "target/compiled/p/sources.yml/s__a__corrupt.sql").read_text()
    assert " ".join(text.split()) == "select record, file, reason, quarantined_at from s__a__corrupt"
