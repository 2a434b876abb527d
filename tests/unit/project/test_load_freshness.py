"""The freshness checks of source tables: what a table inherits, and the errors in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.app.loading.load import try_load
from sqlstream.app.request import ProjectRequest
from sqlstream.project.configuration.freshness import Freshness, Threshold
from sqlstream.project.values import SourceTable

SOURCE = """version: 2
sources:
  - name: shop
    freshness: {warn_after: {count: 6, period: hour}, error_after: {count: 1, period: day}, filter: id > 0}
    loaded_at_field: at
    tables:
      - name: orders
        format: json
        path: in
        schema: id int, at timestamp
"""


def load(folder: Path, table: str = "", source: str = SOURCE) -> tuple[SourceTable | None, list[str]]:
    """Returns the table with more keys, and the findings."""
    (folder / "project.yml").write_text("name: shop\n")
    (folder / "models").mkdir(exist_ok=True)
    (folder / "models/a.sql").write_text("select * from {{ source('shop', 'orders') }}")
    (folder / "sources.yml").write_text(source + "".join(f"        {line}\n" for line in table.splitlines()))
    attempt = try_load(ProjectRequest(folder))
    findings = [f"{finding.location}: {finding.code}" for finding in attempt.errors]
    tables = attempt.loaded.compiled.project.sources if attempt.loaded is not None else ()
    return (tables[0] if tables else None), findings


def checks(folder: Path, table: str = "") -> tuple[Freshness | None, list[str]]:
    """Returns the check of the table with more keys, and the findings."""
    found, findings = load(folder, table)
    return (found.freshness if found else None), findings


def test_a_table_inherits_the_check_of_its_source(tmp_path: Path) -> None:
    """A table has the thresholds, the filter and the field of its source, located there."""
    table, findings = load(tmp_path)

    assert findings == []
    assert table is not None
    freshness = table.freshness
    assert freshness is not None
    assert (freshness.warn_after, freshness.error_after) == (
        Threshold(count=6, period="hour"),
        Threshold(count=1, period="day"),
    )
    assert (table.loaded_at_field, table.locations["loaded_at_field"].line) == ("at", 5)
    assert table.locations["freshness.filter"].line == 4
    assert freshness.criteria == {
        "warn_after": {"count": 6, "period": "hour"},
        "error_after": {"count": 1, "period": "day"},
        "filter": "id > 0",
    }


def test_each_key_is_inherited_alone(tmp_path: Path) -> None:
    """A table overrides single keys, also below config, which beats the same key outside of it."""
    keys = (
        "freshness: {error_after: {count: 9, period: minute}}\nconfig: {freshness: {error_after: null, filter: null}}"
    )

    table, findings = load(tmp_path, keys)

    assert findings == []
    assert table is not None
    freshness = table.freshness
    assert freshness is not None
    assert (freshness.warn_after, freshness.error_after, freshness.filter) == (
        Threshold(count=6, period="hour"),
        None,
        None,
    )
    assert table.locations["freshness"].line == 12


@pytest.mark.parametrize(
    "table", ["freshness: null", "config: {freshness: null}", "freshness: {warn_after: null, error_after: }"]
)
def test_null_turns_a_check_off(tmp_path: Path, table: str) -> None:
    """A null removes the inherited check; without a threshold there is no check."""
    assert checks(tmp_path, table) == (None, [])


@pytest.mark.parametrize(
    ("table", "finding"),
    [
        ("freshness: {warn_after: {count: 1, period: week}}", "sources.yml:11:52: invalid-value"),
        ("freshness: {warn_after: {count: 0, period: day}}", "sources.yml:11:41: invalid-value"),
        ("freshness: {warn_after: {count: 1}}", "sources.yml:11:21: missing-key"),
        ("freshness: {warn: {count: 1, period: day}}", "sources.yml:11:21: unknown-key"),
        ("config: {loaded_at_query: select 1}", "sources.yml:11:18: unknown-key"),
        ("loaded_at_field: null", "sources.yml:4:101: invalid-value"),
    ],
)
def test_errors_are_at_the_key(tmp_path: Path, table: str, finding: str) -> None:
    """Errors are at the user's line; a filter needs a field, because the time of files has no rows."""
    assert checks(tmp_path, table)[1] == [finding]
