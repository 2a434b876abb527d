"""`quarantine release` without a choice of rows, without Java: only an interrupted release needs none."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.quarantine.quarantine import ReleaseRequest
from sqlstream.app.quarantine.quarantine_query import release_rows
from sqlstream.errors import FindingsError, UsageError
from sqlstream.state.backfills import Backfill, BackfillLog, Release

FILES = {
    "project.yml": "name: shop\ntargets: {local: {storage: store}}\n",
    "sources.yml": "sources:\n  - {name: shop, tables: [{name: orders, format: json, path: in, schema: id bigint}]}\n",
    "sinks.yml": "sinks:\n  - {name: out, format: parquet, path: '{{ model.name }}'}\n",
    "models/orders.sql": "{{ config(sink='out', quarantine_sink='out') }} select id from {{ source('shop', 'orders') }}",
    "models/orders.yml": "models: [{name: orders, columns: [{name: id, data_tests: [not_null: {on_violation: quarantine}]}]}]",
}


@pytest.mark.parametrize(("batches", "committed"), [((), 0), ((3,), 3), ((3,), 5)])
def test_a_release_without_a_choice_is_refused_before_spark_starts(
    tmp_path: Path, batches: tuple[int, ...], committed: int
) -> None:
    """Without --where and --all there must be a release that was interrupted; only then Spark would start."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    version = tmp_path / "store/queries/orders/v1"
    commits = version / "checkpoint/commits"
    commits.mkdir(parents=True)
    (commits / str(committed)).write_text("v1\n{}")
    log = BackfillLog(tuple(Backfill(batch, "", None, None, {}, Release(1)) for batch in batches))
    (version / "backfills.json").write_text(log.to_json())
    request = ReleaseRequest(ProjectRequest(tmp_path), "orders")
    with pytest.raises(UsageError, match="say which rows to release with --where"):
        release_rows(request)

    (version / "backfills.json").write_text(BackfillLog((Backfill(9, "", None, None, {}, Release(1)),)).to_json())
    with pytest.raises(FindingsError):  # there is no Java to complete it
        release_rows(request)
