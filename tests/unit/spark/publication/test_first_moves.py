"""The words for what the first switch of a query does to the output of version 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.app.loading.load import load
from sqlstream.app.request import ProjectRequest
from sqlstream.spark.publication.database_views import TablePublication
from sqlstream.spark.publication.folders import FolderPublication
from sqlstream.spark.writing.databases.database import Database

FILES = {
    "project.yml": "name: p\nversion: 1.0.0\n",
    "sources.yml": "sources:\n  - {name: s, tables: [{name: r, format: rate}]}\n",
    "sinks.yml": "sinks:\n"
    "  - {name: file, format: sqlite, path: '{{ model.name }}.db'}\n"
    "  - {name: server, format: jdbc, options: {url: 'jdbc:postgresql://h/d', dbtable: 'shop.{{ model.name }}'}}\n",
    "in_file.sql": "{{ config(sink='file') }} select value from {{ source('s', 'r') }}",
    "in_server.sql": "{{ config(sink='server') }} select value from {{ source('s', 'r') }}",
}


def test_a_folder_gets_the_name_of_the_first_version() -> None:
    """Version 1 of files gets its own path."""
    assert FolderPublication("sums", "/store/sums").first_move == ("/store/sums", "/store/sums.v1")


@pytest.mark.parametrize(
    ("model", "place", "plain", "moved"),
    [
        ("in_file", "/store/in_file.db", "the table in_file in /store/in_file.db", "the table in_file_v1"),
        ("in_server", "shop.in_server", "the table shop.in_server", "the table shop.in_server_v1"),
    ],
)
def test_a_table_gets_the_name_of_the_first_version(
    model: str, place: str, plain: str, moved: str, tmp_path: Path
) -> None:
    """Version 1 gets its own table, in SQLite in the same file. Nothing connects to the database."""

    def connect() -> Database:
        raise AssertionError

    (tmp_path / "models").mkdir()
    for name, text in FILES.items():
        (tmp_path / ("models" if name.endswith(".sql") else "") / name).write_text(text)
    found = load(ProjectRequest(tmp_path, env={})).compiled.models[f"model.p.{model}"]
    (output,) = found.outputs

    published = TablePublication(output.database_table or output.path or "", place, connect, found)

    assert published.first_move == (plain, moved)
