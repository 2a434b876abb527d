"""The identity of a query without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.plan.compiled_identity import identity_without_spark
from sqlstream.app.request import ProjectRequest
from sqlstream.state.checkpoints import CheckpointState
from sqlstream.state.ledger import Ledger, QueryIdentity
from tests.support.compiling import write_files

FILES = {
    "project.yml": "name: p\nversion: 1.0.0\n",
    "sources.yml": "sources:\n  - name: s\n    tables:\n      - {name: a, format: json, path: in, schema: 'id int, code string'}\n",
    "sinks.yml": "sinks:\n  - {name: lake, format: parquet, path: '{{ model.name }}'}\n",
    "seeds/codes.csv": "code,name,unread\na,Anna,1\nb,Bert,2\n",
    "models/view.sql": "select id, code from {{ source('s', 'a') }}",
    "models/named.sql": "{{ config(sink='lake') }} select v.id, c.name from {{ ref('view') }} v join {{ ref('codes') }} c using (code)",
}


def identity(folder: Path, before: QueryIdentity | None) -> QueryIdentity:
    """Returns the identity of the query `named`, whose ledger has the identity `before`."""
    compiled = load_for_reading(ProjectRequest(folder, env={}, partial_parse=False)).compiled
    (model,) = (each for each in compiled.models.values() if each.name == "named")
    ledger = None
    if before is not None:
        ledger = Ledger(before, 1, "2026-01-01T00:00:00+00:00", "0.1.0", "4.3.0", "start")
    state = CheckpointState(1 if ledger else 0, ledger, has_batches=ledger is not None, ledger_path="", last_commit=0)
    return identity_without_spark(compiled, model, state)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("models/view.sql", FILES["models/view.sql"]),
        ("models/view.sql", "select id + 1 as id, code from {{ source('s', 'a') }}"),
        ("models/named.sql", FILES["models/named.sql"].replace("c.name", "c.*")),
        ("seeds/codes.csv", "code,other,name\na,Anna,1\n"),
    ],
)
def test_what_the_ledger_knows_of_equal_text_is_right(tmp_path: Path, file: str, text: str) -> None:
    """An identity that takes fingerprints and seed columns of unchanged text from the ledger is the same as one without."""
    write_files(tmp_path, FILES)
    before = identity(tmp_path, None)
    write_files(tmp_path, {file: text})

    found, fresh = identity(tmp_path, before), identity(tmp_path, None)

    assert (found.fingerprints, found.seed_columns, found.seeds) == (
        fresh.fingerprints,
        fresh.seed_columns,
        fresh.seeds,
    )
    assert (found.fingerprints == before.fingerprints) is (text == FILES[file] or file.startswith("seeds/"))
